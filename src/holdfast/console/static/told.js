// Links to an event (`#told-3`): it is shown in the timeline, on whichever of its pages it stands.

import { parts } from "./actions.js";
import { refresh } from "./live.js";

let sought = 0;

function seek() {
  sought = Number(location.hash.match(/^#told-(\d+)$/)?.[1] ?? 0);
  if (!sought || point()) return;
  document.getElementById("timeline").dataset.part = `${parts}/timeline?before=${sought + 1}`;
  refresh("timeline", { now: true });
}

/** The focus is where its graph can be asked for. */
function point() {
  const row = document.getElementById(`told-${sought}`);
  if (!row) return false;
  sought = 0;
  row.scrollIntoView({ block: "center" });
  row.querySelector("button")?.focus({ preventScroll: true });
  return true;
}

document.addEventListener("part:swapped", ({ target }) => {
  if (target.id === "timeline" && sought) point();
});
/** Followed once more, it is no change; and the browser would take the focus away. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#told-']");
  if (link?.href !== location.href) return;
  event.preventDefault();
  seek();
});
addEventListener("hashchange", seek);
addEventListener("load", seek); // the browser goes there itself before that
