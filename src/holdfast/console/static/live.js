// What keeps a page true: it hears of events and fetches the parts that they concern.
//
// A part is an element with an id and `data-part`, the address of its fragment. It is fetched
// when a run moves; `data-run` narrows that to one run (and its children), `data-hears` to
// types that contain one of its words.

import { at } from "./place.js";
import { isRead, swap } from "./swapping.js";

const QUIET = 250;
const QUIETEST = 1000;
const LONGEST = 30000;
const parts = new Map();
const page = document.documentElement.dataset;

function concerns({ run, hears }, event) {
  if (run && !`${event.run}.`.startsWith(`${run}.`)) return false;
  return !hears || hears.split(" ").some((word) => event.type.includes(word));
}

/**
 * Fetches a part soon, one at a time, and no more than a server can bear; `now` after a press.
 * What is `asked` for by hand comes also while a text is selected in the part.
 */
export function refresh(id, { now = false, asked = now } = {}) {
  const part = parts.get(id) ?? { next: 0, failures: 0 };
  parts.set(id, part);
  part.urgent ||= now;
  part.asked ||= asked;
  if (part.busy) return void (part.again = true);
  if (part.urgent) part.due = clearTimeout(part.due);
  const pause = part.urgent ? 0 : Math.max(0, part.next - performance.now());
  part.due ||= setTimeout(load, pause, id, part);
}

export function refreshAll() {
  for (const element of document.querySelectorAll("[data-part]")) refresh(element.id);
}

async function load(id, part) {
  part.due = 0;
  part.urgent = false;
  const element = document.getElementById(id);
  if (!element?.dataset.part) return;
  part.stale = document.hidden || (!part.asked && isRead(element));
  if (part.stale) return;
  part.busy = true;
  const started = performance.now();
  try {
    await bring(element, part);
    part.failures = 0;
  } catch { // without the connection too, all is fetched when it is back
    const pause = Math.min(QUIETEST * 2 ** part.failures++, LONGEST);
    if (page.live === "live") setTimeout(refresh, pause, id);
  }
  part.busy = false;
  const ended = performance.now();
  part.next = ended + Math.min(Math.max(QUIET, 4 * (ended - started)), QUIETEST);
  if (part.again) {
    part.again = false;
    refresh(id);
  }
}

async function bring(element, part) {
  const asked = part.asked;
  part.asked = false;
  const path = element.dataset.part;
  const response = await fetch(at(path), { cache: "no-store" });
  if (response.status === 401) showState("signed_out");
  if (response.status >= 500 || response.status === 429) throw new Error(response.statusText);
  if (!response.ok) return;
  const text = await response.text();
  if (part.text === text && part.element === element) return;
  part.stale = !asked && isRead(element);
  if (part.stale) return;
  const fresh = swap(element, text, path);
  if (fresh) Object.assign(part, { text, element: fresh });
}

/** What was held back comes now. */
function catchUp() {
  for (const [id, part] of parts) if (part.stale) refresh(id);
}

function hear(message) {
  if (message.state) return showState(message.state);
  if (message.resync) return refreshAll();
  for (const element of document.querySelectorAll("[data-part]")) {
    if (concerns(element.dataset, message)) refresh(element.id);
  }
}

function showState(state) {
  if (page.live === "signed_out" && state === "live") refreshAll();
  page.live = state;
  document.dispatchEvent(new CustomEvent("live:state", { detail: state }));
}

async function open(since) {
  const address = new URL("./live_worker.js", import.meta.url);
  if (!("SharedWorker" in window)) {
    const { connect } = await import(address);
    return connect(hear, page.cursor);
  }
  const { port } = new SharedWorker(address, { type: "module", name: "holdfast" });
  port.onmessage = ({ data }) => hear(data);
  port.postMessage({ since, cursor: page.cursor });
  const tell = (wish) => () => port.postMessage({ [wish]: true });
  return { stop: tell("leave"), hurry: tell("hurry") };
}

document.addEventListener("visibilitychange", async () => {
  if (document.hidden) return;
  catchUp();
  (await line).hurry();
});
document.addEventListener("selectionchange", catchUp);
let line = open(performance.timeOrigin);
addEventListener("online", async () => (await line).hurry());
addEventListener("pagehide", async () => (await line).stop());
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) line = open(Date.now()).finally(refreshAll);
});
