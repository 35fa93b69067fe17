// What a person writes in a chat: it is kept until it is sent, and Enter sends it. A chat that is
// over takes nothing more; what was left unsent can still be read and copied.

import { meanAnew, post, Refusal } from "./api.js";
import { showFields } from "./field_errors.js";
import { keep, kept } from "./kept.js";
import { refresh } from "./live.js";
import { press } from "./shell.js";
import { t } from "./words.js";

const find = (id) => document.getElementById(id);
const form = find("say");
const message = find("message");
export const { session } = form.dataset;
export const home = `/chats/${encodeURIComponent(session)}`;
const begun = `message of ${session}`;
const told = () => find("chat").dataset;
const keepText = () => keep(begun, message.value);
const COMPOSING = 229; // how Safari tells of the Enter that ends a composition

/** Whether something can be sent now, and why not. */
export function offer() {
  const { why, over } = told();
  find("send").disabled = Boolean(why);
  if (find("why").textContent !== why) find("why").textContent = why;
  if (!over) return;
  find("another").hidden = false;
  if (form.contains(document.activeElement)) goOn();
  find("send").hidden = message.readOnly = true;
  message.closest(".field").hidden = !message.value;
}

/** Where one goes on: to write, or elsewhere. */
export function goOn() {
  (told().over ? find("another") : message).focus({ preventScroll: true });
}

/** Sends what is written once `listen` hears, or is too slow. */
export function sendAfter(listen) {
  const submit = (event) => {
    event.preventDefault();
    press(find("send"), () => send(listen));
  };
  form.addEventListener("submit", submit);
  message.addEventListener("keydown", (event) => {
    const composing = event.isComposing || event.keyCode === COMPOSING;
    if (event.key === "Enter" && !event.shiftKey && !composing) submit(event);
  });
}

async function send(listen) {
  const text = message.value;
  if (told().why) return;
  if (!text.trim()) return void showFields(form, { message: t("Write something first.") });
  showFields(form, {});
  await Promise.race([listen(), new Promise((wake) => setTimeout(wake, 2000))]);
  try {
    await post(`${home}/messages`, { message: text });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    offer();
    if (!showFields(form, error.fields)) throw error;
    return;
  }
  if (message.value === text) message.value = "";
  keepText();
  refresh("chat", { now: true });
}

message.addEventListener("input", () => {
  keepText();
  if (!message.value) meanAnew(`${home}/messages`);
});

message.value = kept(begun) ?? "";
