// The picture of a change (templates/repair_picture.html).

const MARGIN = 40;

/** One that is wide begins where something changes. */
export function turn(root) {
  for (const picture of root.querySelectorAll(".picture")) {
    const mark = picture.querySelector(".node:is(.added, .changed, .removed)");
    const left = (one) => one.getBoundingClientRect().left;
    if (mark) picture.scrollLeft += left(mark) - left(picture) - MARGIN;
  }
}
