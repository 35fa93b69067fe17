// Sending an answer: the secrets first, each to its own place, then the rest. What is refused is
// said at its field.

import { newKey, post, Refusal } from "./api.js";
import { settled } from "./asked.js";
import { drop, forget, sendWith } from "./drafts.js";
import { showFields } from "./field_errors.js";
import { changes, control, isSecret, read, rows, values } from "./form.js";
import { refresh } from "./live.js";
import { notify } from "./shell.js";
import { t } from "./words.js";

const sealed = new WeakMap();

/** What is typed anew in a secret field replaces what is under lock. */
export const unseal = (form, name) => sealed.get(form)?.delete(name);

/** Each secret goes to its own place, and leaves the page; what the answer names is its reference. */
async function seal(card, form) {
  const kept = sealed.get(form) ?? new Map();
  sealed.set(form, kept);
  for (const row of rows(form).filter((one) => isSecret(one) && !one.hidden)) {
    const input = control(row);
    if (!input.value) continue;
    const path = `/interactions/${card.dataset.question}/secrets/${encodeURIComponent(row.dataset.name)}`;
    const { reference } = await post(path, { value: input.value }, { key: newKey() });
    kept.set(row.dataset.name, reference);
    input.value = "";
    input.placeholder = t("Under lock; type to replace it");
  }
  return Object.fromEntries(kept);
}

async function body(card, form, { option, fills, provides, prompt }) {
  const given = { selectedOptionId: option, digest: card.dataset.digest };
  const feedback = form.querySelector("[data-field=feedback]")?.value.trim();
  if (feedback && (provides === undefined || prompt !== undefined)) given.feedback = feedback;
  if (fills === undefined) return given;
  const approval = form.dataset.approval !== undefined;
  const data = approval ? changes(form) : { ...values(form), ...(await seal(card, form)) };
  return approval && !Object.keys(data).length ? given : { ...given, data };
}

function show(form, fields, message) {
  const edit = form.querySelector(".edit");
  if (edit && Object.keys(fields).some((name) => name !== "feedback")) edit.open = true;
  if (!showFields(form, fields)) form.querySelector(".errors").textContent = message;
}

export async function answer(card, form, button) {
  let begun = false;
  card.dataset.sending = "true";
  showFields(form, {});
  try {
    await settled(form);
    begun = await forget(card);
    const given = await body(card, form, button.dataset);
    sendWith(card, button.dataset.option);
    await post(`/interactions/${card.dataset.question}/answer`, given);
    drop(card);
    delete card.dataset.dirty;
    card.querySelector("h2").focus({ preventScroll: true });
    notify(t("Your answer is in"));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (!error.tellsNothing) sendWith(card, "");
    refused(form, button, error);
    if (begun) form.dispatchEvent(new Event("input", { bubbles: true })); // it stays a draft
  } finally {
    delete card.dataset.sending;
  }
  refresh(card.id, { now: true });
}

function refused(form, { dataset }, { status, fields, message }) {
  if (status === 409 || status === 410) notify(message, "failed");
  const told = inWords(form, fields);
  if (fields.feedback && dataset.prompt) told.feedback = dataset.prompt;
  show(form, told, message);
}

/** A refusal's messages in the reader's words, where the form itself shows what is wrong. */
function inWords(form, fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, message]) => {
    const row = rows(form).find((one) => one.dataset.name === name);
    return [name, (row && plainly(row)) || message];
  }));
}

function plainly(row) {
  if ([...row.querySelectorAll("[data-own]")].some((own) => !own.hidden && !own.value.trim())) return t("Please specify");
  if (read(row) !== null || isSecret(row) && control(row).value) return "";
  return row.querySelector("fieldset, select") ? t("Please choose") : t("Please fill this in");
}

/** Says which arguments of a call were changed. */
export function sayChanges(form) {
  const place = form.querySelector(".changed");
  if (!place) return;
  const names = Object.keys(changes(form)).join(t(", "));
  const told = form.dataset.fourEyes === undefined
    ? t("Changed: {names}. The tool will run with your values.", { names })
    : t("Changed: {names}. Another person is asked to approve them.", { names });
  place.hidden = !names;
  place.textContent = names && told;
}
