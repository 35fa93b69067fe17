// What a press asks first: a dialog of the server's that says what will come of it.

import { Refusal, post } from "./api.js";
import { showFields } from "./field_errors.js";
import { refreshAll } from "./live.js";
import { at } from "./place.js";
import { notify, press } from "./shell.js";
import { t } from "./words.js";

export const run = document.querySelector("[data-run-id]");
export const parts = `/console/parts/runs/${run.dataset.runId}`;

const movedOn = t("The run has moved on: this is not possible any more.");
const DONE = {
  "resume": t("The run goes on"),
  "go-on-retry": t("What failed is tried again"),
  "go-on-skip": t("It goes on without what failed"),
  "go-on-stop": t("The turn is over"),
  "pause": t("It starts nothing more until it is resumed"),
  "cancel": t("The run is being cancelled"),
  "rerun": t("It runs again"),
  "skip": t("Skipped"),
  "mark-done": t("Marked done"),
  "context": t("Saved"),
};

export async function fetchPart(path) {
  const response = await fetch(at(path), { cache: "no-store" }).catch(() => null);
  if (!response) throw new Refusal(0, {});
  const why = response.status === 401 ? t("You are signed out. Sign in again.") : movedOn;
  if (!response.ok) throw new Refusal(response.status, { detail: why });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return document.adoptNode(page.body.firstElementChild);
}

export async function ask({ do: action, of = "" }) {
  const dialog = await fetchPart(`${parts}/action?${new URLSearchParams({ name: action, of })}`);
  document.getElementById("asking").replaceChildren(dialog);
  const check = ({ target }) => { if (!of && target.id === "run-head") closeIfOutdated(dialog); };
  document.addEventListener("part:swapped", check);
  dialog.addEventListener("close", () => {
    document.removeEventListener("part:swapped", check);
    dialog.remove();
  });
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    press(document.getElementById("action-do"), () => carryOut(dialog));
  });
  dialog.showModal();
}

/** A dialog about the run that its head offers no more closes, unless it holds words or a refusal. */
function closeIfOutdated(dialog) {
  const offered = document.getElementById(`do-${dialog.dataset.name}`);
  const busy = document.getElementById("action-do")?.ariaBusy === "true";
  const refused = dialog.querySelector(".errors");
  if (offered || busy || !dialog.open || refused.textContent) return;
  if ([...dialog.querySelectorAll("[data-field]")].some((one) => one.value)) {
    refused.textContent = movedOn;
    return;
  }
  dialog.close();
  notify(movedOn);
}

/** What was pressed may be gone with the state it was about: then the run has the focus. */
let pressed = null;
document.addEventListener("part:swapped", () => {
  if (!pressed || pressed.isConnected) return;
  pressed = null;
  const lost = document.activeElement === document.body;
  if (lost) document.getElementById("run-title").focus({ preventScroll: true });
});

async function carryOut(dialog) {
  const form = dialog.querySelector("form");
  const { values, errors } = filledIn(form);
  if (showFields(form, errors)) return;
  try {
    const body = { ...JSON.parse(dialog.dataset.body), ...values };
    await post(dialog.dataset.path, body, { known: { ...body, version: dialog.dataset.version } });
  } catch (error) {
    if (!(error instanceof Refusal) || error.status === 401) throw error;
    if (!showFields(form, error.fields)) form.querySelector(".errors").textContent = error.message;
    return;
  }
  dialog.close();
  pressed = document.activeElement;
  notify(DONE[dialog.dataset.name]);
  refreshAll();
}

function filledIn(form) {
  const values = {};
  const errors = {};
  for (const control of form.querySelectorAll("[data-field]")) {
    const { field: name, json } = control.dataset;
    try {
      if (json !== undefined) values[name] = parsed(control.value);
      else if (control.value.trim()) values[name] = control.value.trim();
    } catch (error) {
      errors[name] = error.message;
    }
  }
  return { values, errors };
}

function parsed(text) {
  let value;
  try {
    value = JSON.parse(text.trim() || "{}");
  } catch (error) {
    throw new Error(t("This is not JSON: {why}", { why: error.message }));
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Error(t("It must be an object in braces, with a value for each name."));
  }
  return value;
}
