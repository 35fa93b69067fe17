// The run page: a box's details, the timeline's pages, the past.

import { ask, fetchPart, parts, run } from "./deeds.js";
import { focusNode, mark } from "./graph.js";
import { refresh } from "./live.js";
import { press } from "./shell.js";

const find = (id) => document.getElementById(id);

// Details of a box.

const past = () => find("run-graph")?.dataset.past !== undefined && find("run-graph").dataset.seq;

async function open(node) {
  const query = new URLSearchParams({ node, ...(past() && { at: past() }) });
  find("details-place").replaceChildren(await fetchPart(`${parts}/node?${query}`));
  find("details").dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
  mark(node);
  find("details-title").focus({ preventScroll: true });
  find("details").scrollIntoView({ block: "nearest" });
}

function close() {
  const { node } = find("details").dataset;
  find("details-place").replaceChildren();
  mark("");
  focusNode(node);
}

// The past.

const scrub = find("scrub");
let wanted = null;

function look(seq) {
  const graph = find("run-graph");
  if (!graph || !scrub) return;
  wanted = seq !== null && seq < scrub.max ? seq : null;
  scrub.value = wanted ?? scrub.max;
  find("now").disabled = wanted === null;
  graph.dataset.part = `${parts}/graph${wanted === null ? "" : `?at=${wanted}`}`;
  refresh("run-graph");
}

function arrived(graph) {
  if (!scrub || !graph.dataset.version) return;
  scrub.max = graph.dataset.version;
  const shown = past() ? Number(graph.dataset.seq) : null;
  if (shown !== wanted) return look(wanted);
  scrub.value = wanted ?? scrub.max;
  mark(find("details")?.dataset.node ?? "");
}

scrub?.addEventListener("input", () => look(Number(scrub.value)));
find("now")?.addEventListener("click", () => {
  look(null);
  scrub.focus();
});

function loadCards() {
  if (!document.querySelector(".question")) return;
  if (!document.querySelector(`link[href="${run.dataset.cardCss}"]`)) {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = run.dataset.cardCss;
    document.head.append(link);
  }
  import("./card.js");
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-deed], [data-turn], [data-seq], [data-node], #close-details, .node");
  if (!button || button.id === "run-graph" || button.id === "details") return;
  if (button.matches(".node")) {
    const dragged = find("stage").matches(".dragging") || button.matches(".reference");
    if (!dragged) press(button, () => open(button.dataset.id));
  } else if (button.id === "close-details") close();
  else if (button.dataset.deed) press(button, () => ask(button.dataset));
  else if (button.dataset.node) press(button, () => open(button.dataset.node));
  else if (button.dataset.seq) look(Number(button.dataset.seq));
  else {
    find("timeline").dataset.part = `${parts}/timeline${button.dataset.turn}`;
    refresh("timeline");
  }
});

document.addEventListener("keydown", (event) => {
  const node = event.target.closest?.(".node");
  if (node && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    press(node, () => open(node.dataset.id));
  } else if (event.key === "Escape" && event.target.closest?.("#details")) close();
});

document.addEventListener("part:swapped", ({ target }) => {
  if (target.id === "run-graph") arrived(target);
  loadCards();
});
loadCards();
