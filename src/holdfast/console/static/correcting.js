// A field that is corrected no longer says what was wrong with it.

import { seen } from "./unseen.js";

document.addEventListener("input", ({ target }) => {
  const field = target.closest(".field");
  if (!field) return;
  const hint = field.querySelector("[data-unseen]");
  if (hint) hint.hidden = seen(target.value) === target.value;
  const wrong = field.querySelector(".error:not(:empty)");
  for (const one of [field, ...field.querySelectorAll("[aria-invalid]")]) one.removeAttribute("aria-invalid");
  if (!wrong) return;
  wrong.textContent = "";
  const form = field.closest("form");
  const summary = form?.querySelector(".errors");
  if (summary && !form.querySelector(".error:not(:empty)")) summary.textContent = "";
});
