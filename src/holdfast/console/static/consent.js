// One answer for many questions. The server says once more what each of them asks, whole, and
// the answer counts for exactly that: it names the digests of what was shown.

import { Refusal, post } from "./api.js";
import { showFields } from "./field_errors.js";
import { at } from "./place.js";
import { press } from "./shell.js";
import { t } from "./words.js";

const find = (id) => document.getElementById(id);
const dialog = find("answering");
let meant = null;

async function fetched(ids, option) {
  const wanted = new URLSearchParams([["option", option.id], ...ids.map((id) => ["id", id])]);
  const response = await fetch(at(`/console/parts/answering?${wanted}`), { cache: "no-store" })
    .catch(() => ({ status: 0 }));
  if (!response.ok) throw new Refusal(response.status, {});
  const part = new DOMParser().parseFromString(await response.text(), "text/html");
  return document.adoptNode(part.getElementById("bulk-list"));
}

const shown = () => [...dialog.querySelectorAll("[data-question]")];

/** Shows all that will be answered, and asks once more; `settle` hears what became of each. */
export async function ask(option, picks, settle) {
  find("bulk-asked").replaceChildren(await fetched(picks.map((pick) => pick.value), option));
  const titles = new Map(picks.map((pick) => [pick.value, pick.dataset.title]));
  meant = { option, titles, settle };
  showFields(dialog, {});
  const n = shown().length;
  find("bulk-send").disabled = !n;
  find("bulk-send").className = `button ${option.tone === "danger" ? "fatal" : "primary"}`;
  find("bulk-send").textContent = t("{option} ({n})", { option: option.label, n });
  dialog.showModal();
}

find("bulk-send").addEventListener("click", ({ currentTarget }) => press(currentTarget, async () => {
  const { option, titles, settle } = meant;
  const feedback = find("bulk-feedback").value.trim();
  if (option.needed && !feedback) {
    showFields(dialog, { feedback: t("Please say why") });
    return;
  }
  const digests = Object.fromEntries(shown().map((one) => [one.dataset.question, one.dataset.digest]));
  const { outcomes } = await post("/interactions/answers", {
    requestIds: Object.keys(digests), selectedOptionId: option.id, digests, ...(feedback && { feedback }),
  });
  dialog.close();
  find("bulk-feedback").value = "";
  settle(outcomes, titles);
}));
