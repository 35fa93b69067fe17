// What part of the graph is seen: the drawing is the server's, here only its viewBox changes.

export const stage = document.getElementById("stage");
const READABLE = 0.75;
const COMFORTABLE = 1;
const LARGEST = 2.5;
const MARGIN = 16;
const view = { x: 0, y: 0, scale: 0, whole: false };

export const drawing = () => stage.querySelector("svg");
export const nodes = () => [...stage.querySelectorAll(".node:not(.reference)")];

const size = (svg) => ({ width: +svg.dataset.width, height: +svg.dataset.height });
const fitting = (svg) => Math.min(stage.clientWidth / size(svg).width, 1);
const readable = (svg) => (fitting(svg) >= READABLE ? fitting(svg) : COMFORTABLE);
const highest = () => Math.max(innerHeight * 0.62, 96);
const tall = () => +drawing().getAttribute("height");

/** Also says where the graph goes on (`data-more`), so that its edges fade there. */
export function show() {
  const svg = drawing();
  if (!svg) return;
  const whole = size(svg);
  const [w, h] = [stage.clientWidth / view.scale, tall() / view.scale];
  view.x = within(view.x, w, whole.width);
  view.y = within(view.y, h, whole.height);
  svg.setAttribute("viewBox", `${view.x} ${view.y} ${w} ${h}`);
  stage.dataset.more = [
    view.x > 1 && "left", view.x + w < whole.width - 1 && "right",
    view.y > 1 && "up", view.y + h < whole.height - 1 && "down",
  ].filter(Boolean).join(" ");
}

const within = (place, room, whole) =>
  (room >= whole ? (whole - room) / 2 : Math.min(Math.max(place, 0), whole - room));

/** Takes a fresh drawing in; says whether it is the first, and too large to be read as a whole. */
export function take(svg) {
  svg.dataset.width = svg.getAttribute("width");
  svg.dataset.height = svg.getAttribute("height");
  svg.setAttribute("width", "100%");
  const first = !view.scale;
  if (first) view.whole = readable(svg) === fitting(svg);
  if (first) view.scale = readable(svg);
  makeRoom(svg);
  return first && !view.whole;
}

/** The stage is as high as what is to be seen in it, within the window. */
function makeRoom(svg) {
  if (view.whole) view.scale = Math.min(fitting(svg), highest() / size(svg).height);
  const height = size(svg).height * (view.whole ? view.scale : readable(svg));
  svg.setAttribute("height", Math.min(Math.max(height, 96), highest()));
}

/** The window is another one: what was whole stays whole. */
export function settle() {
  const svg = drawing();
  if (!svg) return;
  makeRoom(svg);
  show();
}

/** The whole graph, and that it stays whole whatever comes. */
export function fit() {
  view.whole = true;
  settle();
}

/** Around a point of the stage, which stays where it is. */
export function zoom(factor, x = stage.clientWidth / 2, y = tall() / 2) {
  const scale = Math.min(Math.max(view.scale * factor, fitting(drawing()) / 2), LARGEST);
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  view.whole = false;
  settle();
}

/** By pixels of the stage. */
export function pan(dx, dy) {
  view.x += dx / view.scale;
  view.y += dy / view.scale;
  show();
}

export function box(node) {
  const { e, f } = node.transform.baseVal.consolidate().matrix;
  const rect = node.querySelector("rect");
  const [width, height] = [+rect.getAttribute("width"), +rect.getAttribute("height")];
  const [x, y] = [e + MARGIN, f + MARGIN - height / 2];
  return { x, y, width, height, middle: [x + width / 2, y + height / 2] };
}

/** Moves the view until the boxes are in it; what is there already moves nothing. */
export function reveal(boxes, centred = false) {
  if (!boxes.length) return;
  const edges = (from, to) => [
    Math.min(...boxes.map(from)) - MARGIN, Math.max(...boxes.map(to)) + MARGIN];
  const move = ([low, high], place, room) =>
    (centred || high - low > room ? (low + high - room) / 2 : Math.min(Math.max(place, high - room), low));
  view.x = move(edges((one) => one.x, (one) => one.x + one.width), view.x, stage.clientWidth / view.scale);
  view.y = move(edges((one) => one.y, (one) => one.y + one.height), view.y, tall() / view.scale);
  show();
}

/** The box that lies next in a direction. */
export function neighbour(node, [dx, dy]) {
  const [x, y] = box(node).middle;
  const ahead = nodes().map((one) => {
    const [u, v] = box(one).middle;
    const along = (u - x) * dx + (v - y) * dy;
    return { one, along, far: along + 2 * (Math.abs((u - x) * dy) + Math.abs((v - y) * dx)) };
  });
  return ahead.filter(({ along }) => along > 1).sort((a, b) => a.far - b.far)[0]?.one;
}
