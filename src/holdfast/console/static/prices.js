// What is chosen, added up; prices in several currencies stay apart.

import { language } from "./words.js";

export function showTotal(form, rows) {
  const total = form.querySelector(".total");
  if (!total) return;
  const sums = new Map();
  for (const row of rows) {
    for (const { dataset } of row.querySelectorAll(":checked[data-amount]")) {
      sums.set(dataset.unit, (sums.get(dataset.unit) ?? 0) + Number(dataset.amount));
    }
  }
  total.hidden = !sums.size;
  total.querySelector("output").textContent = [...sums].map(money).join(" + ");
}

function money([unit, sum]) {
  const [before, after] = unit.split("#");
  const digits = Number.isInteger(sum) ? 0 : 2;
  const format = { minimumFractionDigits: digits, maximumFractionDigits: 2 };
  return `${before}${sum.toLocaleString(language, format)}${after && ` ${after}`}`;
}
