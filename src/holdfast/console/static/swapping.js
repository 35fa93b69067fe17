// A fresh part takes the place of the old one, and its reader loses nothing: what was
// scrolled stays scrolled, what has the focus keeps it. Parts that are being typed in are left
// alone: they get `part:held` with the fresh node as detail. All others end with `part:swapped`.

/** Whether a text is selected in it, to copy it or not to lose the line. */
export function isRead(element) {
  const { isCollapsed, anchorNode, focusNode } = getSelection();
  return !isCollapsed && (element.contains(anchorNode) || element.contains(focusNode));
}

/** `path` is what was fetched: where another is wanted by now, that stays. The fresh node, if any. */
export function swap(element, text, path) {
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById(element.id);
  if (!fresh || !element.isConnected) return null;
  if (isEdited(element)) {
    element.dispatchEvent(new CustomEvent("part:held", { bubbles: true, detail: fresh }));
    return null;
  }
  if (element.dataset.part !== path) fresh.dataset.part = element.dataset.part;
  const focused = element.contains(document.activeElement) && document.activeElement.id;
  const restore = [keepScrolled(element), keepPlace(element)];
  element.replaceWith(document.adoptNode(fresh));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  fresh.dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
  for (const one of restore) one(fresh);
  return fresh;
}

/** What scrolls by itself is known by its id. */
function keepScrolled(element) {
  const scrolled = [...element.querySelectorAll("[id]")].filter((one) => one.scrollTop || one.scrollLeft);
  const places = scrolled.map(({ id, scrollTop, scrollLeft }) => [id, scrollLeft, scrollTop]);
  return () => {
    for (const [id, left, top] of places) document.getElementById(id)?.scrollTo(left, top);
  };
}

/** A reader who has scrolled into the part goes on seeing what is at the window's top. */
function keepPlace(element) {
  const top = (one) => one.getBoundingClientRect().top;
  const seen = top(element) < 0 && [...element.querySelectorAll("[id]")].filter((one) => top(one) > 0);
  const places = seen ? seen.map(({ id }) => [id, top(document.getElementById(id))]) : [];
  return () => {
    const [id, before] = places.find(([one]) => document.getElementById(one)) ?? [];
    if (id) scrollBy(0, top(document.getElementById(id)) - before);
  };
}

const TYPED_IN = "textarea, select, input:not([type=checkbox], [type=radio])";

function isEdited(element) {
  const focus = document.activeElement;
  if (element.contains(focus) && focus.matches(TYPED_IN)) return true;
  return element.matches("[data-dirty]") || element.querySelector("[data-dirty]") !== null;
}
