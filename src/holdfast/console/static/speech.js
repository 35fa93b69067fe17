// A reply while it is being spoken, read from its session's own events. Its words are for eyes
// only: they have no place in the journal, and the finished reply takes theirs.
//
// A browser has six connections to a server, so this one is open only while the agent is at
// work and its page is visible.

import { at } from "./place.js";
import { seen } from "./unseen.js";

const FENCE = /^[ \t]*```.*$\n?/m;

/** Paragraphs and blocks of code, as elements that hold nothing but text. */
export function passages(text) {
  return text.split(FENCE).flatMap((block, place) =>
    place % 2 ? [element("pre", "code", block.replace(/\n+$/, ""))] : paragraphs(block));
}

const paragraphs = (block) => block.split(/\n\s*\n/).filter((one) => one.trim())
  .map((one) => element("p", "text", one.replace(/^\n+|\n+$/g, "")));

function element(name, classes, text) {
  const one = document.createElement(name);
  one.className = classes;
  one.textContent = seen(text);
  return one;
}

export class Speech {
  /** `show(began, text)` hears the reply so far; who came late missed its beginning. */
  constructor(run, show) {
    this.run = run;
    this.show = show;
    this.listening = null;
    this.began = 0;
    this.text = "";
  }

  /** `since` is the last record that is known; settles when the server has heard of us. */
  listen(since) {
    if (!this.listening) {
      this.since = since;
      this.listening = this.#open();
    }
    return this.listening.ready;
  }

  stop() {
    this.listening?.stopping.abort();
    this.listening = null;
  }

  #open() {
    const stopping = new AbortController();
    let begun;
    const ready = new Promise((settle) => { begun = settle; });
    const one = { stopping, ready };
    this.#read(stopping.signal, begun)
      .catch(() => {}) // the finished reply comes by another way
      .finally(() => {
        begun();
        if (this.listening === one) this.listening = null;
      });
    return one;
  }

  async #read(signal, begun) {
    const address = at(`/runs/${encodeURIComponent(this.run)}/events?after=now`);
    const headers = { Accept: "text/event-stream" };
    const response = await fetch(address, { headers, cache: "no-store", signal });
    if (response.status !== 200) return;
    let rest = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      for (const frame of frames) {
        if (frame.startsWith("id:")) begun();
        this.#hear(frame);
      }
    }
  }

  #hear(frame) {
    if (!frame.startsWith("event: Spoken")) return;
    const { began, text } = JSON.parse(/^data: (.*)$/m.exec(frame)[1]);
    if (began !== this.began || text === null) this.text = "";
    this.began = began;
    this.text += text ?? "";
    this.show(began, began > this.since ? this.text : `… ${this.text}`);
  }
}
