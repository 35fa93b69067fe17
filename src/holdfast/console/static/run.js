// The run page: a box's details, the timeline's pages, the past.

import "./countdown.js";
import "./told.js";
import { ask, fetchPart, parts, run } from "./actions.js";
import { focusNode, mark } from "./graph.js";
import { refresh } from "./live.js";
import { turn } from "./picture.js";
import { press } from "./shell.js";

const find = (id) => document.getElementById(id);

// Details of a box.

let wanted = null;
let presses = 0;

const details = (node) =>
  `${parts}/node?${new URLSearchParams({ node, ...(wanted !== null && { at: wanted }) })}`;

/** The last box that was pressed is shown, whichever answer comes last. */
async function open(node) {
  const mine = ++presses;
  const path = details(node);
  const fresh = await fetchPart(path);
  if (mine !== presses) return;
  find("details-place").replaceChildren(fresh);
  if (path !== details(node)) lookInto();
  find("details").dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
  mark(node);
  find("details-title").focus({ preventScroll: true });
  find("details").scrollIntoView({ block: "nearest" });
}

/** A box may be pressed again while its answer is awaited. */
const choose = (node) => press({}, () => open(node));

function close() {
  presses += 1;
  const { node } = find("details").dataset;
  find("details-place").replaceChildren();
  mark("");
  focusNode(node);
}

// The past.

const scrub = find("scrub");

function look(seq) {
  const graph = find("run-graph");
  if (!graph || !scrub) return;
  wanted = seq !== null && seq < scrub.max ? seq : null;
  scrub.value = wanted ?? scrub.max;
  find("now").disabled = wanted === null;
  graph.dataset.part = `${parts}/graph${wanted === null ? "" : `?at=${wanted}`}`;
  refresh("run-graph", { asked: true });
  lookInto();
}

/** Details are of the moment that the graph shows. */
function lookInto() {
  const panel = find("details");
  if (!panel) return;
  panel.dataset.part = details(panel.dataset.node);
  refresh("details", { asked: true });
}

function arrived(graph) {
  if (!scrub || !graph.dataset.version) return;
  scrub.max = graph.dataset.version;
  const shown = graph.dataset.past === undefined ? null : Number(graph.dataset.seq);
  if (shown !== wanted) return;
  scrub.value = wanted ?? scrub.max;
  mark(find("details")?.dataset.node ?? "");
}

scrub?.addEventListener("input", () => look(Number(scrub.value)));
find("now")?.addEventListener("click", () => {
  look(null);
  scrub.focus();
});

/** A picture that is folded is fetched when it is wanted. */
document.addEventListener("toggle", ({ target }) => {
  const { picture } = target.dataset;
  if (!picture || !target.open || target.querySelector("figure")) return;
  press(target, async () => {
    target.append(await fetchPart(picture));
    turn(target);
  });
}, true);

function loadCards() {
  if (!document.querySelector(".question, .case")) return;
  if (!document.querySelector(`link[href="${run.dataset.cardCss}"]`)) {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = run.dataset.cardCss;
    document.head.append(link);
  }
  if (document.querySelector(".question")) import("./card.js");
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-do], [data-turn], [data-seq], [data-node], #close-details, #stage .node");
  if (!button || button.id === "run-graph" || button.id === "details") return;
  if (button.matches(".node")) {
    const dragged = find("stage").matches(".dragging") || button.matches(".reference");
    if (!dragged) choose(button.dataset.id);
  } else if (button.id === "close-details") close();
  else if (button.dataset.do) press(button, () => ask(button.dataset));
  else if (button.dataset.node) choose(button.dataset.node);
  else if (button.dataset.seq) look(Number(button.dataset.seq));
  else {
    find("timeline").dataset.part = `${parts}/timeline${button.dataset.turn}`;
    refresh("timeline", { asked: true });
  }
});

document.addEventListener("keydown", (event) => {
  const node = event.target.closest?.("#stage .node");
  if (node && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    choose(node.dataset.id);
  } else if (event.key === "Escape" && event.target.closest?.("#details")) close();
});

document.addEventListener("part:swapped", ({ target }) => {
  if (target.id === "run-graph") arrived(target);
  loadCards();
});
loadCards();
