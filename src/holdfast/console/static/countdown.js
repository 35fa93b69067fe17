// Deadlines, counted down by the server's clock; at the end the card is fetched again.
//
//   <span data-deadline="1700000000"><b></b></span>    `data-late` once it is over

import { now, span } from "./clock.js";
import { refresh } from "./live.js";
import { t } from "./words.js";

function tick() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("[data-deadline]")) {
    const left = element.dataset.deadline - now();
    const text = left > 0 ? span(Math.ceil(left)) : t("Time is up");
    const place = element.querySelector("b");
    if (place.textContent !== text) place.textContent = text;
    element.classList.toggle("soon", left < 60);
    if (left > 0 || element.dataset.late) continue;
    element.dataset.late = "true";
    const part = element.closest("[data-part]");
    if (part) refresh(part.id);
  }
}

tick();
document.addEventListener("part:swapped", tick);
setInterval(tick, 1000);
