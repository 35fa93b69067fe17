// Cards (templates/card.html): a page loads this module, and every card that is on it or comes later
// works. A card that is written in is never swapped: answered elsewhere, it says so and keeps what
// was written, to be copied.

import { answer, sayChanges, unseal } from "./answering.js";
import { settle } from "./asked.js";
import "./countdown.js";
import { keep, unsent } from "./drafts.js";
import { changes, control, dress, isChanged, isSecret, restore, values } from "./form.js";
import { turn } from "./picture.js";
import { press } from "./shell.js";
import { keepWritten, lines, showWritten } from "./written.js";

const formOf = (card) => card.querySelector("form.answer");
const words = (form) => form.querySelector("[data-field=feedback]");

function prepare(card) {
  const form = formOf(card);
  turn(card);
  if (card.dataset.status !== "open") return showWritten(card);
  if (!form || form.dataset.ready) return;
  form.dataset.ready = "true";
  const left = unsent(card);
  const { $feedback = "", ...draft } = left?.data ?? JSON.parse(form.dataset.draft);
  restore(form, draft);
  if ($feedback && words(form)) words(form).value = $feedback;
  const begun = Object.keys(draft).length > 0;
  if (begun || $feedback) card.dataset.dirty = "true";
  if (begun && form.dataset.approval !== undefined) form.querySelector(".edit").open = true;
  sayChanges(form);
  if (left) changed({ target: form });
}

function prepareAll(root) {
  if (root.matches?.(".question")) prepare(root);
  root.querySelectorAll(".question").forEach(prepare);
}

const isOpenly = (row) => isChanged(row) && !isSecret(row);

function said(card, form) {
  const given = form.dataset.approval === undefined
    ? values(form, { everything: true }) : changes(form, isOpenly);
  const feedback = words(form)?.value;
  const data = { ...given, ...(feedback && { $feedback: feedback }) };
  return { data, lines: [...lines(card)], sent: card.dataset.sent };
}

function changed({ target }) {
  const form = target.closest("form.answer");
  if (!form) return;
  const card = form.closest(".question");
  card.dataset.dirty = "true";
  if (target !== form) delete card.dataset.sent;
  if (target.type === "password") unseal(form, target.dataset.field);
  dress(form);
  sayChanges(form);
  settle(form, `${card.dataset.part}/asked`);
  keep(card, form, () => said(card, form));
}

/** A card that is being read or answered stays as it is. */
function hold({ target }) {
  const card = target.closest?.(".question");
  const opened = target.matches?.("details[open]") || target.closest?.("form.answer");
  if (card && opened) card.dataset.dirty = "true";
}

/** A part that holds several cards (`data-cards`): those that are new come, those held stay. */
function merge(part, fresh) {
  const kept = new Set([...fresh.querySelectorAll(".question")].map((card) => card.id));
  for (const card of part.querySelectorAll(".question:not([data-dirty])")) {
    if (!kept.has(card.id)) card.remove();
  }
  for (const card of fresh.querySelectorAll(".question")) {
    if (document.getElementById(card.id)) continue;
    part.append(document.adoptNode(card));
    prepare(card);
  }
}

document.addEventListener("input", changed);
document.addEventListener("focusin", hold);
document.addEventListener("toggle", hold, true);
document.addEventListener("submit", (event) => {
  if (event.target.matches("form.answer")) event.preventDefault();
});

document.addEventListener("click", ({ target }) => {
  const card = target.closest(".question");
  const button = target.closest("[data-option], [data-confirms], [data-clears]");
  if (!card || !button) return;
  if (button.dataset.clears !== undefined) return clear(button);
  if (button.dataset.again !== undefined) {
    return card.querySelector(`dialog[data-for="${CSS.escape(button.dataset.option)}"]`).showModal();
  }
  const dialog = button.closest("dialog");
  dialog?.close();
  const meant = dialog
    ? card.querySelector(`[data-option="${CSS.escape(dialog.dataset.for)}"]`) : button;
  press(meant, () => answer(card, formOf(card), meant));
});

function clear(button) {
  const row = button.closest("[data-name]");
  for (const input of row.querySelectorAll("input")) input.checked = false;
  control(row).focus();
  control(row).dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("part:swapped", ({ target }) => prepareAll(target));
document.addEventListener("part:held", ({ target, detail }) => {
  if (target.matches(".question")) keepWritten(target, detail);
  else if (target.dataset.cards !== undefined) merge(target, detail);
});
prepareAll(document);
