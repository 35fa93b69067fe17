// One stream of events for all pages of a browser, read in a SharedWorker; a page whose
// browser has none reads its own with `connect`.
//
// Pages are told {state}, {run, type, seq}, or {resync: true} when something may have been
// missed. The first page brings the cursor it was rendered at; one that joins later says
// since when it has been looking, and hears what happened in between.

import { at } from "./place.js";

const SILENCE = 45000; // three heartbeats
const SLOWEST = 15000;
const REMEMBERED = 200;

export function connect(tell, start = "") {
  const stopping = new AbortController();
  let cursor = start;
  let first = Boolean(start);
  let tries = 0;
  let hurry = () => {};

  async function listen() {
    while (!stopping.signal.aborted) {
      try {
        await read();
      } catch { /* told below: the connection is gone, for whatever reason */ }
      if (stopping.signal.aborted) return;
      tell({ state: tries < 3 ? "reconnecting" : "offline" });
      await new Promise((wake) => {
        hurry = wake;
        setTimeout(wake, Math.min(500 * 2 ** tries++, SLOWEST));
      });
    }
  }

  async function read() {
    const silence = new AbortController();
    const either = () => silence.abort();
    stopping.signal.addEventListener("abort", either);
    let timer = setTimeout(either, SILENCE);
    try {
      const headers = { Accept: "text/event-stream" };
      if (cursor) headers["Last-Event-ID"] = cursor;
      const response = await fetch(at("/events"), { headers, cache: "no-store", signal: silence.signal });
      if (response.status === 401) return leave();
      if (!response.ok) throw new Error(String(response.status));
      tries = 0;
      tell({ state: "live" });
      if (!first) tell({ resync: true });
      first = false;
      let rest = "";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(either, SILENCE);
        const frames = (rest + value).split("\n\n");
        rest = frames.pop();
        frames.forEach(hear);
      }
    } finally {
      clearTimeout(timer);
      stopping.signal.removeEventListener("abort", either);
    }
  }

  function leave() {
    stopping.abort();
    tell({ state: "signed_out" });
  }

  function hear(frame) {
    const lines = frame.split("\n").map((line) => line.split(/: ?(.*)/s, 2));
    const { id, event, data } = Object.fromEntries(lines);
    if (id) cursor = id;
    if (event === "resync") tell({ resync: true });
    if (!data) return;
    const { run_id: run, type, seq } = JSON.parse(data);
    if (seq) tell({ run, type, seq });
  }

  listen();
  return { stop: () => stopping.abort(), hurry: () => hurry() };
}

const ports = new Set();
const recent = [];
let state = "reconnecting";
let liveSince = Infinity;
let stream = null;

function share(message) {
  if (message.state) {
    state = message.state;
    liveSince = state === "live" ? Date.now() : Infinity;
    if (state === "signed_out") stream = null;
  } else if (message.run) {
    recent.push({ at: Date.now(), message });
    if (recent.length > REMEMBERED) liveSince = Math.max(liveSince, recent.shift().at);
  }
  for (const port of ports) port.postMessage(message);
}

function join(port, { since, cursor }) {
  ports.add(port);
  port.postMessage({ state });
  if (!stream) return (stream = connect(share, cursor));
  if (since < liveSince) return state === "live" && port.postMessage({ resync: true });
  for (const { at, message } of recent) if (at >= since) port.postMessage(message);
}

function leave(port) {
  ports.delete(port);
  if (ports.size) return;
  stream?.stop();
  stream = null;
  state = "reconnecting";
  liveSince = Infinity;
}

/** A page that is looked at again, or has a network again, waits for nothing. */
function hurry(port) {
  if (stream) stream.hurry();
  else stream = connect(share);
  port.postMessage({ state });
}

if ("onconnect" in self) {
  self.onconnect = ({ ports: [port] }) => {
    port.onmessage = ({ data }) => {
      if (data.since) join(port, data);
      else if (data.hurry) hurry(port);
      else leave(port);
    };
  };
}
