// The fields of a form (form_fields.html): what they hold, as JSON; what was changed since.

import { local, moment, number } from "./inputs.js";
import { showTotal } from "./prices.js";

const all = (root, selector) => [...root.querySelectorAll(selector)];
export const rows = (form) => all(form, "[data-name]");
const asked = (row) => !row.hidden;
export const isSecret = (row) => row.dataset.type === "secret";
const choosing = (control) => control.type === "radio" || control.type === "checkbox";
const picked = (row) =>
  all(row, "input:checked, option:checked").map((one) => one.value).filter(Boolean);
const ownText = (row, value) => row.querySelector(`[data-own="${CSS.escape(value)}"]`);

/** A row's control, or the first of several. */
export const control = (row) => row.querySelector("input, select, textarea");

export const labelOf = (row) =>
  row.querySelector("label[for], legend").firstChild.textContent.trim();

function choice(row, value) {
  const own = ownText(row, value);
  return own ? { value, text: own.value } : value;
}

/** What a row says, or null. */
export function read(row) {
  const chosen = picked(row);
  switch (row.dataset.type) {
    case "boolean": return chosen.length ? chosen[0] === "yes" : null;
    case "multiselect": return chosen.length ? chosen.map((one) => choice(row, one)) : null;
    case "radio":
    case "select": return chosen.length ? choice(row, chosen[0]) : null;
    case "number": return number(control(row).value.trim());
    case "datetime": return moment(control(row));
    default: return control(row).value.trim() ? control(row).value : null;
  }
}

export function isChanged(row) {
  return all(row, "input, textarea, option").some((one) => {
    if (one.matches("option")) return one.selected !== one.defaultSelected;
    return choosing(one) ? one.checked !== one.defaultChecked : one.value !== one.defaultValue;
  });
}

function write(row, value) {
  const list = Array.isArray(value) ? value : [value].filter((one) => one !== null);
  const chosen = new Map(list.map((one) => [one?.value ?? String(one), one?.text ?? ""]));
  const yes = row.dataset.type === "boolean" && (value ? "yes" : "no");
  for (const one of all(row, "input, textarea, option")) {
    if (one.dataset.own !== undefined) one.value = chosen.get(one.dataset.own) ?? "";
    else if (one.matches("option")) one.selected = chosen.has(one.value);
    else if (choosing(one)) one.checked = chosen.has(one.value) || one.value === yes;
    else if (one.type === "datetime-local") one.value = local(value);
    else one.value = value ?? "";
  }
}

/** What the form says. What was emptied on purpose is said too, or a default would speak. */
export function values(form, { everything = false } = {}) {
  const said = {};
  for (const row of rows(form)) {
    if (isSecret(row) || !(everything || asked(row))) continue;
    const value = read(row);
    if (value !== null || isChanged(row)) said[row.dataset.name] = value;
  }
  return said;
}

/** What was changed; what was emptied too, as it stands there. */
export function changes(form, wanted = isChanged) {
  return Object.fromEntries(rows(form).filter(wanted)
    .map((row) => [row.dataset.name, read(row) ?? emptied(row)]));
}

const emptied = (row) => ({ text: control(row).value, list: [] })[row.dataset.empty] ?? null;

/** Puts a draft back in, once, over what the server drew.
 *
 * What a control makes of that is where changes begin: one that cannot hold what it was given
 * (a line break, a date that is none) has changed nothing by itself. */
export function restore(form, draft) {
  for (const input of all(form, "[data-moment]")) input.value = local(input.dataset.moment);
  for (const input of all(form, "input, textarea")) {
    if (!choosing(input)) input.defaultValue = input.value;
  }
  for (const row of rows(form)) {
    if (row.dataset.name in draft && !isSecret(row)) write(row, draft[row.dataset.name]);
  }
  dress(form);
}

/** Shows what follows from what is chosen: texts of one's own, the total. */
export function dress(form) {
  for (const row of rows(form)) {
    const chosen = picked(row);
    for (const own of all(row, "[data-own]")) own.hidden = !chosen.includes(own.dataset.own);
    const clear = row.querySelector("[data-clears]");
    if (clear) clear.hidden = !chosen.length;
  }
  showTotal(form, rows(form).filter(asked));
}
