// Changes go to the server as JSON. Each press has a name of its own, so that a double click
// or a second try does nothing twice. A request whose outcome is unknown keeps its name,
// also over a reload: the same one, sent again soon, is the same press. A press about a run that
// has moved since is another one.

import { keep, kept } from "./kept.js";
import { at } from "./place.js";
import { t } from "./words.js";

/** A refusal, as the server's problem+json tells it. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? unexplained(status));
    this.status = status;
    this.fields = problem.fields ?? {};
    this.problem = problem;
  }

  /** The outcome of the request is unknown. */
  get isUntold() {
    return this.status === 0 || this.status >= 500;
  }

  /** Not even of an earlier try. */
  get tellsNothing() {
    return this.isUntold || this.status === 401 || this.status === 429;
  }
}

/** Where no reason was given. */
function unexplained(status) {
  if (status === 401) return t("You are signed out. Sign in again.");
  return status > 0 && status < 500 ? t("The server refused it ({status}).", { status }) : t("No answer came; it may have been received. Pressing again does nothing twice.");
}

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0")).join("");
}

const SOON = 600000;
const unanswered = new Map(kept("unanswered"));
const isLate = ({ since }) => Date.now() - since > SOON;

function nameOf(press) {
  for (const [one, named] of unanswered) if (isLate(named)) unanswered.delete(one);
  if (!unanswered.has(press)) unanswered.set(press, { name: newKey(), since: Date.now() });
  keep("unanswered", [...unanswered]);
  return unanswered.get(press).name;
}

function settled(isOurs) {
  for (const press of unanswered.keys()) if (isOurs(press)) unanswered.delete(press);
  keep("unanswered", [...unanswered]);
}

/** What goes with everything that a page sends. `Holdfast-Person` is the one it was made for: where
    another has signed in meanwhile, nothing is done or kept in their name. */
export const headersOf = (key) => ({
  "Content-Type": "application/json",
  "Accept-Language": document.documentElement.lang,
  "Holdfast-Person": encodeURIComponent(document.documentElement.dataset.who),
  "Idempotency-Key": key,
});

/** What is sent there next is meant anew, also where it says the same. */
export const meanAnew = (path) => settled((press) => press.startsWith(`POST ${path} `));

/** With a `key` of its own it is no press; `known` is the body as it may be kept here, with what
    the press is about. */
export async function send(method, path, body = {}, { key = "", known = body } = {}) {
  const press = `${method} ${path} ${JSON.stringify(known)}`;
  const headers = headersOf(key || nameOf(press));
  const once = () => exchange(at(path), { method, headers, body: JSON.stringify(body) });
  const { status, answer } = await once().catch(once).catch(() => {
    throw new Refusal(0, {});
  });
  const refusal = status < 300 ? null : new Refusal(status, answer);
  if (!refusal?.tellsNothing) settled((one) => one === press);
  if (status === 401) document.dispatchEvent(new Event("signed:out"));
  if (refusal) throw refusal;
  return answer;
}

async function exchange(path, request) {
  const response = await fetch(path, request);
  const text = await response.text();
  let answer = {};
  try {
    answer = text ? JSON.parse(text) : {};
  } catch { /* a proxy answered: its page says nothing to a reader */ }
  return { status: response.status, answer };
}

export const post = (path, body, how) => send("POST", path, body, how);
