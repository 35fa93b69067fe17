// What a person has begun to fill in is kept on the server, a moment after they stop typing,
// and at once when they leave; until the server has it this tab keeps it, over a reload too.
// Secrets are never part of it.

import { headersOf, newKey, Refusal, send } from "./api.js";
import * as tab from "./kept.js";
import { at } from "./place.js";
import { t } from "./words.js";

const PAUSE = 700;
const waiting = new Map();
const sending = new Map();
const addressOf = (card) => `/interactions/${card.dataset.question}/draft`;

const nameOf = (card) => `draft of ${card.dataset.question}`;

/** What the server has not been told, {data, lines, sent}, else null: `lines` as people read it,
    `sent` the option that went off with it. */
export const unsent = (card) => tab.kept(nameOf(card));
export const keepHere = (card, written) => tab.keep(nameOf(card), written);
export const drop = (card) => tab.drop(nameOf(card));

/** Keeps what `said` gives, here at once, there when it is time. */
export function keep(card, form, said) {
  keepHere(card, said());
  clearTimeout(waiting.get(card)?.timer);
  waiting.set(card, { form, said, timer: setTimeout(store, PAUSE, card) });
}

/** The answer is on its way: nothing that was begun may come after it. Says whether there was. */
export async function forget(card) {
  clearTimeout(waiting.get(card)?.timer);
  const begun = waiting.delete(card);
  await sending.get(card);
  return waiting.delete(card) || begun; // it may have come back, untold
}

/** What is written goes off as this option, though its outcome may never be known. */
export function sendWith(card, option) {
  card.dataset.sent = option;
  const left = unsent(card);
  if (left) keepHere(card, { ...left, sent: option });
}

async function store(card) {
  await sending.get(card);
  const one = waiting.get(card);
  if (!one) return;
  waiting.delete(card);
  sending.set(card, put(card, one));
}

// Each draft has a name of its own, also one that says the same as an earlier one: what was
// kept in between is to be replaced.
async function put(card, one) {
  const place = one.form.querySelector(".kept");
  try {
    await send("PUT", addressOf(card), { data: one.said().data }, { key: newKey() });
    if (!waiting.has(card)) drop(card);
    place.textContent = t("Draft kept");
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const later = error.status === 401 || error.isUntold;
    if (later && !waiting.has(card)) waiting.set(card, one);
    place.textContent = later ? t("Draft not kept yet") : ""; // the answer will say what is wrong
  }
}

document.addEventListener("live:state", ({ detail }) => {
  if (detail === "live") for (const card of waiting.keys()) store(card);
});

// A page that goes away is not told what became of it.
addEventListener("pagehide", () => {
  for (const [card, { said }] of waiting) {
    const body = JSON.stringify({ data: said().data });
    const how = { method: "PUT", keepalive: true, headers: headersOf(newKey()), body };
    fetch(at(addressOf(card)), how).catch(() => {});
  }
  waiting.clear();
});
