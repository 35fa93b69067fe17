// What keeps a page true: it hears of events and fetches the parts that they concern.
//
// A part is an element with an id and `data-part`, the address of its fragment. It is fetched
// when a run moves; `data-run` narrows that to one run (and its children), `data-hears` to
// types that contain one of its words. Parts that somebody is typing in are left alone: they
// get `part:held` with the fresh node as detail. All others end with `part:swapped`.

const QUIET = 250;
const subscribers = new Set();
const parts = new Map();

/** Calls back with {run, type, seq}; a filter is as on parts: {run, hears}, both or none. */
export function subscribe(filter, callback) {
  const one = (event) => concerns(filter, event) && callback(event);
  subscribers.add(one);
  return () => subscribers.delete(one);
}

function concerns({ run, hears }, event) {
  if (run && !`${event.run}.`.startsWith(`${run}.`)) return false;
  return !hears || hears.split(" ").some((word) => event.type.includes(word));
}

/** Fetches a part soon: one at a time, and not more often than the server can bear. */
export function refresh(id) {
  const part = parts.get(id) ?? { next: 0 };
  parts.set(id, part);
  if (part.busy) part.again = true;
  else part.due ||= setTimeout(load, Math.max(0, part.next - performance.now()), id, part);
}

export function refreshAll() {
  for (const element of document.querySelectorAll("[data-part]")) refresh(element.id);
}

async function load(id, part) {
  part.due = 0;
  const element = document.getElementById(id);
  if (!element?.dataset.part) return;
  part.stale = document.hidden;
  if (part.stale) return;
  part.busy = true;
  const started = performance.now();
  try {
    const response = await fetch(element.dataset.part, { cache: "no-store" });
    if (response.status === 401) location.reload();
    else if (response.ok) swap(element, part, await response.text());
  } catch { /* the connection is gone: when it is back, every part is fetched */ }
  part.busy = false;
  part.next = performance.now() + Math.max(QUIET, 4 * (performance.now() - started));
  if (part.again) {
    part.again = false;
    refresh(id);
  }
}

function swap(element, part, text) {
  if (text === part.text) return;
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById(element.id);
  if (!fresh) return;
  if (isEdited(element)) {
    element.dispatchEvent(new CustomEvent("part:held", { bubbles: true, detail: fresh }));
    return;
  }
  part.text = text;
  const focused = element.contains(document.activeElement) && document.activeElement.id;
  element.replaceWith(document.adoptNode(fresh));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  fresh.dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
}

const TYPED_IN = "textarea, select, input:not([type=checkbox], [type=radio])";

function isEdited(element) {
  const focus = document.activeElement;
  if (element.contains(focus) && focus.matches(TYPED_IN)) return true;
  return element.matches("[data-dirty]") || element.querySelector("[data-dirty]") !== null;
}

function hear(message) {
  if (message.state) return showState(message.state);
  if (message.resync) return refreshAll();
  for (const one of subscribers) one(message);
  for (const element of document.querySelectorAll("[data-part]")) {
    if (concerns(element.dataset, message)) refresh(element.id);
  }
}

function showState(state) {
  if (state === "signed_out") return location.reload();
  document.documentElement.dataset.live = state;
  document.dispatchEvent(new CustomEvent("live:state", { detail: state }));
}

async function open(since) {
  const { cursor } = document.documentElement.dataset;
  const address = new URL("./live_worker.js", import.meta.url);
  if (!("SharedWorker" in window)) {
    const { connect } = await import(address);
    return connect(hear, cursor);
  }
  const { port } = new SharedWorker(address, { type: "module", name: "holdfast" });
  port.onmessage = ({ data }) => hear(data);
  port.postMessage({ since, cursor });
  return () => port.postMessage({ leave: true });
}

document.addEventListener("visibilitychange", () => {
  for (const [id, part] of parts) if (part.stale && !document.hidden) refresh(id);
});
let leaving = open(performance.timeOrigin);
addEventListener("pagehide", async () => (await leaving)());
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) leaving = open(Date.now()).finally(refreshAll);
});
