// What every page has: the connection's state, notices, menus, dialogs, copying, signing out.

import "./clock.js";
import "./correcting.js";
import "./live.js";
import { Refusal, post } from "./api.js";
import { dropAll } from "./kept.js";
import { at } from "./place.js";
import { t } from "./words.js";

const notices = document.getElementById("notices");

/** Says something to the reader, who may close it; failures stay until they do. */
export function notify(text, tone = "done") {
  const notice = document.createElement("div");
  notice.className = `notice ${tone}`;
  const said = document.createElement("p");
  said.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.textContent = t("Dismiss");
  close.addEventListener("click", () => notice.remove());
  notice.append(said, close);
  notices.append(notice);
  if (tone === "done") setTimeout(() => notice.remove(), 6000);
  return said;
}

/** Nothing that was written is lost: it is there again after signing in elsewhere. */
function offerSignIn() {
  if (document.getElementById("sign-in")) return;
  const link = document.createElement("a");
  link.id = "sign-in";
  link.href = at("/console/");
  link.target = "_blank";
  link.textContent = t("Sign in again in a new tab; what you wrote stays here");
  notify("", "failed").append(`${t("You are signed out. Sign in again.")} `, link);
}

/** Runs what a press asks for, once at a time, and says what went wrong. */
export async function press(button, work) {
  if (button.ariaBusy === "true") return;
  button.ariaBusy = "true";
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status === 401) offerSignIn();
    else notify(error.message, "failed");
  } finally {
    button.ariaBusy = null;
  }
}

document.addEventListener("signed:out", offerSignIn);

const STATES = {
  live: t("Live"),
  reconnecting: t("Reconnecting…"),
  offline: t("Offline"),
  signed_out: t("You are signed out. Sign in again."),
};

const indicator = document.getElementById("live");

document.addEventListener("live:state", ({ detail }) => {
  const text = STATES[detail];
  if (indicator.textContent !== text) indicator.textContent = text;
  if (detail === "signed_out") offerSignIn();
  else document.getElementById("sign-in")?.closest(".notice").remove();
});

document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
  const opener = target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens).showModal();
  const closer = target.closest("[data-closes]");
  if (closer) closer.closest("dialog").close();
  const copied = target.closest("[data-copy]");
  if (copied) copy(copied);
});

document.addEventListener("keydown", ({ key }) => {
  const menu = key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

/** Where the browser does not let us, as over plain HTTP, the reader copies what is selected. */
async function copy({ dataset }) {
  try {
    await navigator.clipboard.writeText(dataset.copy);
    notify(t("Copied"));
  } catch {
    const text = document.createElement("textarea");
    Object.assign(text, { className: "input mono", readOnly: true, value: dataset.copy });
    text.ariaLabel = t("The browser does not let this page copy. The text is selected here: press Ctrl+C or ⌘C.");
    notify(t("The browser does not let this page copy. The text is selected here: press Ctrl+C or ⌘C."), "failed").after(text);
    text.select();
  }
}

document.getElementById("sign-out")?.addEventListener("click", ({ currentTarget }) =>
  press(currentTarget, async () => {
    await post("/logout");
    dropAll();
    location.assign(at("/console/"));
  }));
