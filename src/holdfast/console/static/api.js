// Changes go to the server as JSON. Each press has a name of its own, so that a double click
// or a second try does nothing twice.

import { t } from "./words.js";

/** A refusal, as the server's problem+json tells it. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? t("js.unreachable"));
    this.status = status;
    this.fields = problem.fields ?? {};
    this.problem = problem;
  }
}

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0")).join("");
}

export async function send(method, path, body = {}, key = newKey()) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, {});
  }
  const text = await response.text();
  let answer = {};
  try {
    answer = text ? JSON.parse(text) : {};
  } catch { /* somebody between us answered: its page says nothing to a reader */ }
  if (!response.ok) throw new Refusal(response.status, answer);
  return answer;
}

export const post = (path, body, key) => send("POST", path, body, key);

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
    control.setAttribute("aria-invalid", "true");
    first ??= control.matches("fieldset") ? control.querySelector("input") : control;
  }
  const summary = form.querySelector(".errors");
  if (summary) summary.textContent = n ? t("js.fix", { n }) : "";
  first?.focus();
  return n;
}
