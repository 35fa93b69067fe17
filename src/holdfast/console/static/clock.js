// Times as the reader's place and language have them, by the server's clock.
//
//   <time data-at="1700000000">       when something happened
//   <span data-since="1700000000">    how long it has been going on, counted live

import { language, t } from "./words.js";

const offset = Number(document.documentElement.dataset.now) - performance.timeOrigin / 1000;
const units = t("s min h d").split(" ");
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const today = new Intl.DateTimeFormat(language, { ...clock, second: "2-digit" });
const earlier = new Intl.DateTimeFormat(language, { ...clock, month: "short", day: "numeric" });
const whole = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" });

/** Seconds since the epoch as the server counts them, whatever this machine believes. */
export const now = () => (performance.timeOrigin + performance.now()) / 1000 + offset;

export function span(seconds) {
  const [s, min, h, d] = units;
  const n = Math.max(0, Math.round(seconds));
  if (n < 60) return `${n} ${s}`;
  if (n < 3600) return `${Math.floor(n / 60)} ${min} ${n % 60} ${s}`;
  if (n < 86400) return `${Math.floor(n / 3600)} ${h} ${Math.floor(n / 60) % 60} ${min}`;
  return `${Math.floor(n / 86400)} ${d} ${Math.floor(n / 3600) % 24} ${h}`;
}

/** A moment by the reader's clock. */
export const clockTime = (at) => today.format(new Date(at * 1000));

function dress(root) {
  for (const element of root.querySelectorAll("time[data-at]")) {
    const at = new Date(element.dataset.at * 1000);
    const fresh = now() - element.dataset.at < 43200;
    element.textContent = (fresh ? today : earlier).format(at);
    element.title = whole.format(at);
  }
}

function tick() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("[data-since]")) {
    const text = span(now() - element.dataset.since);
    if (element.textContent !== text) element.textContent = text;
  }
}

dress(document);
tick();
document.addEventListener("part:swapped", ({ target }) => { dress(target); tick(); });
setInterval(tick, 1000);
