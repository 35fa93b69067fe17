// What somebody has begun to fill in is kept on the server, a moment after they stop typing,
// and at once when they leave. Secrets are never part of it.

import { newKey, Refusal, send } from "./api.js";
import { t } from "./words.js";

const PAUSE = 700;
const waiting = new Map();
const sending = new Map();
const addressOf = (card) => `/interactions/${card.dataset.question}/draft`;

/** Keeps what `said` gives, when it is time. */
export function keep(card, form, said) {
  clearTimeout(waiting.get(card)?.timer);
  waiting.set(card, { form, said, timer: setTimeout(store, PAUSE, card) });
}

/** The answer is on its way: nothing that was begun may come after it. */
export async function forget(card) {
  clearTimeout(waiting.get(card)?.timer);
  waiting.delete(card);
  await sending.get(card);
}

async function store(card) {
  await sending.get(card);
  const one = waiting.get(card);
  if (!one) return;
  waiting.delete(card);
  sending.set(card, put(card, one));
}

async function put(card, { form, said }) {
  const place = form.querySelector(".kept");
  try {
    await send("PUT", addressOf(card), { data: said() });
    place.textContent = t("js-card.kept");
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    place.textContent = ""; // the answer itself will say what is wrong
  }
}

// A page that goes away is not told what became of it.
addEventListener("pagehide", () => {
  for (const [card, { said }] of waiting) {
    const body = JSON.stringify({ data: said() });
    const headers = { "Content-Type": "application/json", "Idempotency-Key": newKey() };
    fetch(addressOf(card), { method: "PUT", keepalive: true, headers, body }).catch(() => {});
  }
  waiting.clear();
});
