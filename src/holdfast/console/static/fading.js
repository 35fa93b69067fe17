// A drawing larger than its room fades where it goes on (`data-more`), as the run's graph does.

const drawing = document.querySelector(".drawing");

function tell() {
  const { scrollLeft: x, scrollTop: y, clientWidth, clientHeight, scrollWidth, scrollHeight } = drawing;
  drawing.dataset.more = [
    x > 1 && "left", x + clientWidth < scrollWidth - 1 && "right",
    y > 1 && "up", y + clientHeight < scrollHeight - 1 && "down",
  ].filter(Boolean).join(" ");
}

drawing.addEventListener("scroll", tell, { passive: true });
new ResizeObserver(tell).observe(drawing);
