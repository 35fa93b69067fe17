// A card was closed elsewhere while somebody wrote in it: it shows how it ended, and below that
// what they had written.

import { forget } from "./drafts.js";
import { isChanged, isSecret, labelOf, rows } from "./form.js";
import { notify } from "./shell.js";
import { t } from "./words.js";

/** Exchanges the card for the fresh one, unless it is still open, or the answer is our own. */
export function keepWritten(card, fresh) {
  if (card.dataset.sending || card.dataset.status !== "open" || fresh.dataset.status === "open") return;
  forget(card);
  const written = [...lines(card)];
  const focused = card.contains(document.activeElement);
  card.replaceWith(document.adoptNode(fresh));
  if (written.length) {
    fresh.querySelector("footer").before(block(written));
    fresh.dataset.dirty = "true";
    notify(t("js-card.elsewhere", { title: fresh.querySelector("h2").textContent }), "failed");
  }
  fresh.dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
  if (focused) fresh.querySelector("h2").focus();
}

function* lines(card) {
  const form = card.querySelector("form.answer");
  if (!form) return;
  for (const row of rows(form)) {
    if (!isSecret(row) && isChanged(row)) yield [labelOf(row), text(row)];
  }
  const words = form.querySelector("[data-field=feedback]")?.value;
  if (words) yield [t("js-card.feedback"), words];
}

function text(row) {
  const chosen = [...row.querySelectorAll("input:checked, option:checked")]
    .map((one) => (one.labels?.[0] ?? one).textContent.trim());
  const typed = [...row.querySelectorAll("input:not([type=radio], [type=checkbox]), textarea")]
    .filter((one) => !one.hidden).map((one) => one.value);
  return [...chosen, ...typed].filter(Boolean).join(" ");
}

function block(written) {
  const section = document.createElement("section");
  section.className = "written message waiting";
  const title = element("h3", t("js-card.typed"));
  const list = element("dl", "", "facts");
  for (const [name, value] of written) list.append(element("dt", name), element("dd", value));
  const copy = element("button", t("js-card.copy"), "button little");
  copy.type = "button";
  copy.dataset.copy = written.map(([name, value]) => `${name}: ${value}`).join("\n");
  section.append(title, list, copy);
  return section;
}

function element(name, content, classes = "") {
  const one = document.createElement(name);
  one.textContent = content;
  one.className = classes;
  return one;
}
