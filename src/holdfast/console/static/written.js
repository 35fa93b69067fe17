// A card was closed elsewhere while it was written in: it shows how it ended, and below that
// what they had written, also after a reload.

import { drop, forget, keepHere, unsent } from "./drafts.js";
import { isChanged, isSecret, labelOf, rows } from "./form.js";
import { notify } from "./shell.js";
import { t } from "./words.js";

/** Exchanges the card for the fresh one, unless it is still open, or the answer is our own. */
export function keepWritten(card, fresh) {
  if (card.dataset.sending || card.dataset.status !== "open" || fresh.dataset.status === "open") return;
  forget(card);
  const ours = isOurs(fresh, card.dataset.sent);
  const written = ours ? [] : [...lines(card)];
  if (ours) drop(card);
  const focused = card.contains(document.activeElement);
  card.replaceWith(document.adoptNode(fresh));
  if (ours) notify(t("Your answer is in"));
  if (written.length) {
    keepHere(fresh, { lines: written });
    notify(t("“{title}” was closed while you were writing. Your text is kept below it.", { title: fresh.querySelector("h2").textContent }), "failed");
  }
  fresh.dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
  if (focused) fresh.querySelector("h2").focus();
}

/** Below a card that is closed: what the server was never told, unless it was our own answer. */
export function showWritten(card) {
  const { sent, lines: written = [] } = unsent(card) ?? {};
  if (isOurs(card, sent)) return drop(card);
  if (!written.length || card.querySelector(".written")) return;
  card.querySelector("footer").before(block(written));
  card.dataset.dirty = "true";
}

/** How it ended is what went off from here, and whose answer to that was lost. */
const isOurs = ({ dataset }, sent) => Boolean(sent) && dataset.taken === sent
  && dataset.by === document.documentElement.dataset.who;

export function* lines(card) {
  const form = card.querySelector("form.answer");
  if (!form) return;
  for (const row of rows(form)) {
    if (!isSecret(row) && isChanged(row)) yield [labelOf(row), text(row)];
  }
  const words = form.querySelector("[data-field=feedback]")?.value;
  if (words) yield [t("Reason or feedback"), words];
}

function text(row) {
  const chosen = [...row.querySelectorAll("input:checked, option:checked")]
    .map((one) => (one.labels?.[0] ?? one).textContent.trim());
  const typed = [...row.querySelectorAll("input:not([type=radio], [type=checkbox]), textarea")]
    .filter((one) => !one.hidden).map((one) => one.value);
  return [...chosen, ...typed].filter(Boolean).join(" ");
}

function block(written) {
  const section = document.createElement("section");
  section.className = "written message waiting";
  const title = element("h3", t("What you had written (it was not sent)"));
  const list = element("dl", "", "facts");
  for (const [name, value] of written) list.append(element("dt", name), element("dd", value));
  const copy = element("button", t("Copy"), "button little");
  copy.type = "button";
  copy.dataset.copy = written.map(([name, value]) => `${name}: ${value}`).join("\n");
  section.append(title, list, copy);
  return section;
}

function element(name, content, classes = "") {
  const one = document.createElement(name);
  one.textContent = content;
  one.className = classes;
  return one;
}
