// The sheet of the closed form: formulas as large as the sheet is wide, within reason; longer ones are scrolled.

import { h } from "./elements.js";

const LARGEST = 16, LEAST = 10;

export function equationsSheet(equations) {
  const element = h("div", { class: "equations" }, equations);
  let fitted = 0;
  const update = () => {
    if (element.clientWidth === fitted) return;
    fitted = element.clientWidth;
    element.style.fontSize = `${LARGEST}px`;
    const widest = Math.max(...Array.from(element.querySelectorAll("math > mtable"), (table) => table.getBoundingClientRect().width));
    element.style.fontSize = `${Math.max(LEAST, Math.min(LARGEST, Math.floor((20 * LARGEST * fitted) / widest) / 20))}px`;
  };
  return { name: "Equations", element, update };
}
