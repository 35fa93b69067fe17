// The graph under one's hands: zoom, drag, follow, and the keyboard's way from box to box.

import { clockTime, now } from "./clock.js";
import { box, drawing, fit, neighbour, nodes, pan, reveal, settle, show, stage, take, zoom } from "./view.js";
import { t } from "./words.js";

const follow = document.getElementById("follow");
const BUSY = ".running, .retrying, .waiting, .failed";
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
let current = "";

const follows = () => follow.ariaPressed === "true";

function setFollow(on) {
  follow.ariaPressed = String(on);
  if (on) keepUp();
}

/** Steps first: tasks are busy only because of them. */
function keepUp() {
  const busy = nodes().filter((node) => node.matches(BUSY));
  const working = busy.filter((node) => node.matches(".listener"));
  reveal((working.length ? working : busy).map(box), true);
}

function prepare() {
  const svg = drawing();
  if (!svg) return;
  const large = take(svg);
  for (const node of nodes()) {
    node.setAttribute("role", "button");
    node.setAttribute("tabindex", "-1");
  }
  const known = nodes().find((node) => node.dataset.id === current) ?? nodes()[0];
  known?.setAttribute("tabindex", "0");
  show();
  if (large || follows()) setFollow(true);
  count();
}

function focus(node) {
  for (const one of nodes()) one.setAttribute("tabindex", "-1");
  node.setAttribute("tabindex", "0");
  node.focus({ preventScroll: true });
  reveal([box(node)]);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const way = WAYS[event.key];
  const node = event.target.closest(".node");
  if (way && !event.shiftKey) {
    const next = node ? neighbour(node, way) : nodes().find((one) => one.tabIndex === 0);
    if (next) focus(next);
  } else if (way) pan(60 * way[0], 60 * way[1]);
  else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") fit();
  else return;
  setFollow(false);
  event.preventDefault();
}

function drag(event) {
  if (event.button || event.target.closest(".moment")) return;
  let last = event;
  let far = 0;
  const move = (moved) => {
    const [dx, dy] = [last.clientX - moved.clientX, last.clientY - moved.clientY];
    far += Math.abs(dx) + Math.abs(dy);
    last = moved;
    if (far < 5) return;
    stage.classList.add("dragging");
    setFollow(false);
    pan(dx, dy);
  };
  const held = new AbortController();
  const end = () => {
    held.abort();
    setTimeout(() => stage.classList.remove("dragging"));
  };
  addEventListener("pointermove", move, { signal: held.signal });
  addEventListener("pointerup", end, { signal: held.signal });
  addEventListener("pointercancel", end, { signal: held.signal });
}

function wheel(event) {
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!event.ctrlKey && !event.metaKey && !sideways) return;
  event.preventDefault();
  setFollow(false);
  if (sideways) return pan(event.deltaX, 0);
  const { left, top } = stage.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top);
}

/** What waits for its next try says when that comes. */
function count() {
  for (const node of stage.querySelectorAll("[data-due]")) {
    const note = node.querySelector(".note");
    note.dataset.said ??= note.textContent;
    const { due: at } = node.dataset;
    const due = at > now() ? t(", next at {time}", { time: clockTime(at) }) : "";
    note.textContent = note.dataset.said + due;
  }
}

/** Marks the box whose details are shown. */
export function mark(id) {
  for (const node of stage ? nodes() : []) node.classList.toggle("chosen", node.dataset.id === id);
}

export function focusNode(id) {
  const node = stage && nodes().find((one) => one.dataset.id === id);
  if (node) focus(node);
}

if (stage) {
  stage.addEventListener("keydown", keys);
  stage.addEventListener("pointerdown", drag);
  stage.addEventListener("wheel", wheel, { passive: false });
  stage.addEventListener("focusin", ({ target }) => {
    stage.dataset.held = current = target.closest(".node")?.dataset.id ?? "";
  });
  stage.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget) stage.dataset.held = "";
  });
  const presses = {
    "zoom-in": () => zoom(1.25),
    "zoom-out": () => zoom(0.8),
    "zoom-fit": fit,
  };
  document.getElementById("zoom").addEventListener("click", ({ target }) => {
    setFollow(target === follow && !follows());
    presses[target.id]?.();
  });
  document.addEventListener("part:swapped", ({ target }) => {
    if (target.id !== "run-graph") return;
    const { held } = stage.dataset;
    prepare();
    if (held && document.activeElement === document.body) focusNode(held);
  });
  new ResizeObserver(() => requestAnimationFrame(settle)).observe(stage);
  setInterval(count, 1000);
  prepare();
}
