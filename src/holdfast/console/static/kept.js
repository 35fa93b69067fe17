// What this tab keeps until the server has it: it outlives a reload, is one person's at one
// place, and is forgotten after a day. Where the browser keeps nothing, the page alone does.
// Secrets never come here.

import { at } from "./place.js";

const DAY = 86400000;
const here = `holdfast ${at("/")} `;
const mine = `${here}${document.documentElement.dataset.who} `;
const memory = new Map();

/** Nothing written is nothing to keep. */
export function keep(name, value) {
  if (value === "") return drop(name);
  const text = JSON.stringify({ at: Date.now(), value });
  memory.set(name, text);
  try {
    sessionStorage.setItem(mine + name, text);
  } catch { /* full, or forbidden */ }
}

/** What is kept under that name, else null. */
export function kept(name) {
  const { at: since, value } = JSON.parse(memory.get(name) ?? stored(name) ?? "{}");
  return Date.now() - since < DAY ? value : null;
}

function stored(name) {
  try {
    return sessionStorage.getItem(mine + name);
  } catch {
    return null;
  }
}

export function drop(name) {
  memory.delete(name);
  try {
    sessionStorage.removeItem(mine + name);
  } catch { /* then it was never kept */ }
}

/** Signing out leaves nothing to the next person. */
export function dropAll() {
  memory.clear();
  try {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(here)) sessionStorage.removeItem(name);
    }
  } catch { /* then nothing was ever kept */ }
}
