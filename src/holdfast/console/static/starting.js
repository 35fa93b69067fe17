// Starting a plan: its inputs, each read by its type, and a prompt. What is wrong is said at its
// field; what is started is where one goes. What is filled in outlives a reload, secrets excepted.

import { post, Refusal } from "./api.js";
import { settle, settled } from "./asked.js";
import { showFields } from "./field_errors.js";
import { control, dress, isSecret, read, restore, rows, values } from "./form.js";
import { drop, keep, kept } from "./kept.js";
import { at } from "./place.js";
import { press } from "./shell.js";
import { t } from "./words.js";

const form = document.getElementById("starting");
const { plan } = form.dataset;
const prompt = form.querySelector("[data-field=prompt]");
const begun = `start of ${plan}`;
const asked = `/console/parts/plans/${encodeURIComponent(plan)}/asked`;

/** Without a prompt to read them from, all that is required must be given. */
function missing() {
  if (prompt.value.trim()) return {};
  const empty = rows(form).filter((row) => !row.hidden && row.dataset.required !== undefined
    && read(row) === null);
  return Object.fromEntries(empty.map((row) => [row.dataset.name,
    row.querySelector("fieldset, select") ? t("Please choose.") : t("Please fill this in.")]));
}

function secrets() {
  const given = rows(form).filter((row) => isSecret(row) && !row.hidden && control(row).value);
  return Object.fromEntries(given.map((row) => [row.dataset.name, control(row).value]));
}

async function start() {
  await settled(form);
  const wrong = missing();
  if (showFields(form, wrong)) return;
  try {
    const known = { plan_id: plan, prompt: prompt.value, values: values(form) };
    const body = { ...known, values: { ...known.values, ...secrets() } };
    const { id } = await post("/instances", body, { known });
    drop(begun);
    location.assign(at(`/console/runs/${encodeURIComponent(id)}`));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (!showFields(form, named(error.fields))) throw error;
  }
}

/** A refusal names a field as it stands in the request; here it is known by its own name. */
const named = (fields) => Object.fromEntries(
  Object.entries(fields).map(([name, message]) => [name.replace(/^values\./, ""), message]));

function changed() {
  dress(form);
  settle(form, asked);
  keep(begun, { text: prompt.value, given: values(form, { everything: true }) });
}

form.addEventListener("input", changed);
form.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-clears]");
  if (!button) return;
  const row = button.closest("[data-name]");
  for (const input of row.querySelectorAll("input")) input.checked = false;
  control(row).focus();
  control(row).dispatchEvent(new Event("input", { bubbles: true }));
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  press(document.getElementById("start-now"), start);
});

const { text, given } = kept(begun) ?? {};
restore(form, given ?? {});
if (text) prompt.value = text;
if (given) settle(form, asked);
