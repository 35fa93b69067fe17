// Brings an element up to date with a fresh one, child by child: who has the same id and the same
// `data-rev` stays the very node it was, with what was opened, typed or focused in it.

/** `leave` says of an old child that the fresh element has no more whether it stays. */
export function merge(old, fresh, leave) {
  for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
  const wanted = new Set([...fresh.children].map((one) => one.id));
  for (const one of [...old.children]) if (!wanted.has(one.id) && !leave(one)) one.remove();
  let place = null;
  for (const one of [...fresh.children]) place = put(old, one, place, leave);
}

function put(parent, one, before, leave) {
  const mine = [...parent.children].find((child) => child.id === one.id);
  if (mine?.dataset.merge !== undefined) {
    merge(mine, one, leave);
    return mine;
  }
  if (mine && mine.dataset.rev === one.dataset.rev) return mine;
  const made = document.adoptNode(one);
  if (mine) exchange(mine, made);
  else if (before) before.after(made);
  else parent.prepend(made);
  made.dispatchEvent(new CustomEvent("part:swapped", { bubbles: true }));
  return made;
}

function exchange(mine, made) {
  const opened = [...mine.querySelectorAll("details[open]")].map((one) => one.id);
  const focused = mine.contains(document.activeElement) && document.activeElement;
  const place = focused && (focused.id || focused.closest("[id]")?.id);
  mine.replaceWith(made);
  for (const one of made.querySelectorAll("details")) if (opened.includes(one.id)) one.open = true;
  if (!place) return;
  const again = document.getElementById(place);
  (focused.matches("summary") ? again?.querySelector("summary") : again)?.focus({ preventScroll: true });
}
