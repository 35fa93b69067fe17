// What is wrong with a form, said at its fields.

import { nt } from "./words.js";

/** Where one goes on: the text that a choice still needs, else what is chosen. */
function wanting(control) {
  const row = control.closest("[data-name]") ?? control;
  const own = [...row.querySelectorAll("[data-own]")].find((one) => !one.hidden && !one.value.trim());
  if (own || !control.matches("fieldset")) return own ?? control;
  return control.querySelector("input:checked") ?? control.querySelector("input");
}

/** Shows a refusal's messages at their fields, focuses the first, and says how many. */
export function showFields(form, fields) {
  for (const message of form.querySelectorAll(".error")) message.textContent = "";
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  let first = null;
  let n = 0;
  for (const [name, message] of Object.entries(fields)) {
    const control = form.querySelector(`[data-field="${CSS.escape(name)}"]`);
    const place = control && form.querySelector(`#${CSS.escape(control.id)}-error`);
    if (!place) continue;
    n += 1;
    place.textContent = message;
    const meant = wanting(control);
    control.setAttribute("aria-invalid", "true");
    if (meant.dataset.own !== undefined) meant.setAttribute("aria-invalid", "true");
    first ??= meant;
  }
  const summary = form.querySelector(".errors");
  if (summary) summary.textContent = n ? nt("Please fix {n} field", "Please fix {n} fields", { n }) : "";
  first?.focus();
  return n;
}
