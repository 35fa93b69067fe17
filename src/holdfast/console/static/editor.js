// A plan's text: lines are numbered, mistakes are listed and marked where they stand, and what
// checks out can be registered.

import { post, Refusal } from "./api.js";
import { at } from "./place.js";
import { press } from "./shell.js";
import { nt, t } from "./words.js";

const find = (id) => document.getElementById(id);
const form = find("editor");
const source = find("source");
const gutter = form.querySelector(".gutter");
const written = source.value;
const HIDDEN = /(?![\t\r\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** As many numbers as there are lines; what was marked stays until the next check. */
function number() {
  const wanted = source.value.split("\n").length;
  while (gutter.children.length > wanted) gutter.lastElementChild.remove();
  while (gutter.children.length < wanted) gutter.append(document.createElement("li"));
  gutter.scrollTop = source.scrollTop;
  warn();
}

const spelled = (one) => `⟨${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** A character that turns the text around would make it read as what it is not. */
function warn() {
  const found = source.value.split("\n").map((line) => (line.match(HIDDEN) ?? []).map(spelled));
  const told = found.flatMap((some, at) => (
    some.length ? [t("line {line} {text}", { line: at + 1, text: some.join(" ") })] : []));
  found.forEach((some, at) => { gutter.children[at].dataset.hidden = some.length ? "yes" : ""; });
  const text = told.length ? t("It holds characters that do not show, and may not read as it runs: {text}", { text: told.slice(0, 20).join(" · ") }) : "";
  if (find("hidden").textContent !== text) find("hidden").textContent = text;
  return told.length > 0;
}

function say(text, tone) {
  const line = document.createElement("p");
  line.className = `message ${tone}`;
  line.textContent = text;
  find("verdict").replaceChildren(...(text ? [line] : []));
}

function mark(problems) {
  for (const line of gutter.children) line.className = "";
  for (const { line } of problems) gutter.children[Math.max(line, 1) - 1]?.classList.add("wrong");
  source.ariaInvalid = problems.length ? "true" : null;
  find("problems").hidden = !problems.length;
  find("problems").replaceChildren(...problems.map(told));
}

function told({ message, line, column }) {
  const item = document.createElement("li");
  const place = document.createElement("button");
  place.type = "button";
  place.className = "quiet";
  place.textContent = t("Line {line}, column {column}", { line: Math.max(line, 1), column: Math.max(column, 1) });
  place.addEventListener("click", () => show(line, column));
  const text = document.createElement("span");
  text.textContent = message;
  item.append(place, text);
  return item;
}

/** Puts the cursor where the mistake is, and the line into view. */
function show(line, column) {
  const lines = source.value.split("\n");
  const before = lines.slice(0, Math.max(line, 1) - 1);
  const start = before.reduce((sum, one) => sum + one.length + 1, 0);
  const here = lines[before.length] ?? "";
  source.focus();
  source.setSelectionRange(start + Math.min(Math.max(column, 1) - 1, here.length), start + here.length);
  source.scrollTop = source.scrollHeight / lines.length * (before.length - 4);
}

/** What the server says of the text; its mistakes are no failure of ours. */
async function judge(path) {
  try {
    const plan = await post(path, { source: source.value });
    mark([]);
    return plan;
  } catch (error) {
    const problems = error instanceof Refusal && error.problem.problems;
    if (!problems) throw error;
    mark(problems);
    say(nt("{n} mistake found. Nothing has changed.", "{n} mistakes found. Nothing has changed.", { n: problems.length }), "failed");
    find("problems").querySelector("button")?.focus();
    return null;
  }
}

async function check() {
  const plan = await judge("/plans/check");
  if (!plan) return;
  const { plan: here } = form.dataset;
  const other = here && plan.plan_id !== here;
  const told = other
    ? t("No mistakes found. Its plan_id is another: Register makes a plan {plan} of its own.", { plan: plan.plan_id })
    : t("No mistakes found.");
  say(told, other || warn() ? "waiting" : "done");
}

async function register() {
  const plan = await judge("/plans");
  if (!plan) return;
  removeEventListener("beforeunload", keepTyped);
  location.assign(at(`/console/plans/${encodeURIComponent(plan.plan_id)}`));
}

function keepTyped(event) {
  if (source.value !== written) event.preventDefault();
}

source.addEventListener("input", number);
source.addEventListener("scroll", () => { gutter.scrollTop = source.scrollTop; });
find("check")?.addEventListener("click", ({ currentTarget }) => press(currentTarget, check));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (find("register")) press(find("register"), register);
});
if (!source.readOnly) addEventListener("beforeunload", keepTyped);
number();
