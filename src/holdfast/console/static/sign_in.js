// Signing in with a pasted token; a link's address works too.

import { Refusal, newKey, post } from "./api.js";
import { showFields } from "./field_errors.js";
import { at } from "./place.js";

const form = document.getElementById("sign-in");

// A link that was refused is of no use in the address any more, nor in the history.
if (location.pathname === at("/login")) history.replaceState(null, "", at("/console/"));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const pasted = form.elements.token.value.trim();
  const token = /[?&]token=([^&\s]+)/.exec(pasted)?.[1] ?? pasted;
  try {
    await post("/login", { token }, { key: newKey() });
    location.reload();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    showFields(form, { token: error.message });
  }
});
