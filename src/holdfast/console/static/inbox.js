// The inbox: a selection that outlives a refresh, and one answer for exactly what is selected,
// as far as all of it offers the same.

import { ask } from "./consent.js";
import { refresh } from "./live.js";
import { notify, press } from "./shell.js";
import { nt, t } from "./words.js";

const find = (id) => document.getElementById(id);
const picks = () => [...document.querySelectorAll("#inbox-queue input[type=checkbox]")];
const chosen = () => picks().filter((pick) => pick.checked);
const selected = new Set();

const offers = (pick) => JSON.parse(pick.dataset.offered);
const alike = (one) => (other) => one.id === other.id && one.action === other.action && one.label === other.label;

/** The answers that every one of them takes. */
function common(all) {
  const [first, ...others] = all.map(offers);
  return (first ?? []).filter((one) => others.every((list) => list.some(alike(one))));
}

function show() {
  const all = chosen();
  find("bulk").hidden = !all.length;
  const text = all.length ? nt("{n} question selected", "{n} questions selected", { n: all.length }) : "";
  if (find("selected").textContent !== text) find("selected").textContent = text;
  const options = common(all);
  find("bulk-none").hidden = !all.length || options.length > 0;
  find("bulk-options").replaceChildren(...options.map(button));
}

function button(option) {
  const one = document.createElement("button");
  one.type = "button";
  one.className = `button little ${option.tone}`;
  one.textContent = option.label;
  one.addEventListener("click", () => press(one, () => ask(option, chosen(), settle)));
  return one;
}

/** Says what became of each. The button that was pressed is gone: one goes on from the top. */
function settle(outcomes, titles) {
  const n = outcomes.filter((one) => one.success).length;
  if (n) notify(nt("{n} question answered", "{n} questions answered", { n }));
  for (const { requestId, success, error } of outcomes) {
    if (success) choose(find(`pick-${requestId}`), false);
    else notify(t("{title}: {why}", { title: titles.get(requestId), why: error }), "failed");
  }
  show();
  find("inbox-title").focus();
  refresh("inbox-queue", { now: true });
}

function choose(pick, yes) {
  if (!pick) return;
  pick.checked = yes;
  if (yes) selected.add(pick.value);
  else selected.delete(pick.value);
}

document.addEventListener("change", ({ target }) => {
  if (target.closest("#inbox-queue")) choose(target, target.checked);
  else if (target.closest("#filters")) return find("filters").requestSubmit();
  show();
});

document.addEventListener("part:swapped", ({ target }) => {
  if (target.id !== "inbox-queue") return;
  for (const pick of picks()) pick.checked = selected.has(pick.value) && !pick.disabled;
  show();
});

find("clear").addEventListener("click", () => {
  for (const pick of chosen()) choose(pick, false);
  show();
});

// Letters are shortcuts only where the queue has the focus: elsewhere they may be dictated text.
document.addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  const line = event.target.closest("#inbox-queue li");
  if (!line) return;
  const links = [...document.querySelectorAll("#inbox-queue li > a")];
  const next = links.findIndex((link) => line.contains(link)) + step;
  links[Math.min(Math.max(next, 0), links.length - 1)].focus();
});

if (find("apply")) find("apply").hidden = true;
show();
