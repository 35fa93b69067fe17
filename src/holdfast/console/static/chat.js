// A chat: it tells what happens as it happens, and stops or goes on when asked to.

import { post } from "./api.js";
import { refresh } from "./live.js";
import { merge } from "./merging.js";
import { goOn, home, offer, sendAfter, session } from "./message.js";
import { press } from "./shell.js";
import { passages, Speech } from "./speech.js";
import { t } from "./words.js";

const find = (id) => document.getElementById(id);
const speech = new Speech(session, speak);
let lately = false;

const told = () => find("chat").dataset;
const listen = () => speech.listen(Number(told().version));

/** A page that shows the end follows it; any other stays where it is. */
function following(change) {
  const page = document.documentElement;
  const atEnd = innerHeight + scrollY > page.scrollHeight - 160;
  change();
  if (atEnd) toTheEnd();
}

/** A question that waits is what matters there. */
function toTheEnd() {
  scrollTo(0, document.documentElement.scrollHeight);
  const asked = document.querySelector("#transcript .question[data-status=open]");
  if (asked?.getBoundingClientRect().top < 96) asked.scrollIntoView();
}

function speak(began, text) {
  if (began <= Number(told().replied)) return;
  speech.shown = { began, text };
  if (lately) return;
  lately = true;
  requestAnimationFrame(() => {
    lately = false;
    following(showSpeech);
  });
}

function showSpeech() {
  const { began = 0, text = "" } = speech.shown ?? {};
  const place = find("speaking");
  const over = began <= Number(told().replied);
  place.replaceChildren(...(over ? [] : passages(text)));
  place.hidden = !place.firstChild;
}

/** A card that is written in stays, whatever became of its question. */
const leave = (child) => child.querySelector(":scope > .question[data-dirty]") !== null;

function update(fresh) {
  const chat = find("chat");
  if (Number(fresh.dataset.version) < Number(chat.dataset.version)) return;
  const focused = document.activeElement;
  following(() => {
    merge(chat, fresh, leave);
    showSpeech();
    show();
  });
  if (focused !== document.body && !focused.isConnected) leadOn();
}

/** What had the focus is gone: the next question has it, else the message. */
function leadOn() {
  const next = document.querySelector("#transcript .question[data-status=open] h2");
  if (next) next.focus({ preventScroll: true });
  else goOn();
}

function show() {
  const { works, stoppable } = told();
  offer();
  find("stop").hidden = !stoppable;
  nameCalls();
  if (works && !document.hidden) listen();
  else speech.stop();
}

/** What a stop would meet, also while the dialog is open. */
function nameCalls() {
  const calls = [...document.querySelectorAll("#transcript [data-open]")].map(({ dataset }) => {
    const line = document.createElement("li");
    line.textContent = t("{tool}: {standing}", dataset);
    return line;
  });
  find("stopping-calls").replaceChildren(...calls);
}

sendAfter(listen);

const command = (name) => async () => {
  await post(`${home}/${name}`, {}, { known: { version: told().version } });
  refresh("chat", { now: true });
};

find("stop-now").addEventListener("click", ({ currentTarget }) => {
  find("stopping").close();
  press(currentTarget, command("cancel"));
});
document.addEventListener("click", ({ target }) => {
  const button = target.closest("#resume");
  if (button) press(button, command("resume"));
});

document.addEventListener("part:held", ({ target, detail }) => {
  if (target.id === "chat") update(detail);
});
document.addEventListener("part:swapped", ({ target }) => {
  if (target.matches(".question:not([data-status=open])")) refresh("chat");
});
document.addEventListener("visibilitychange", show);

show();
toTheEnd();
