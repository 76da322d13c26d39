// The studio: the page, with sheets for what Python computes behind it.

import { Asking } from "./asking.js";
import { h } from "./elements.js";
import { build } from "./page.js";
import { bondsSheet } from "./sheet_bonds.js";
import { geometrySheet } from "./sheet_geometry.js";
import { measuredSheet } from "./sheet_measured.js";
import { phaseSheet } from "./sheet_phase.js";
import { planSheet } from "./sheet_plan.js";
import { reachSheet } from "./sheet_reach.js";

export function start(programs) {
  return build(programs, (page) => {
    const asking = (page.asking = new Asking(page.model.token)), sign = h("span", { class: "mark", hidden: true }, "thinking …");
    document.querySelector("#head .mark").before(sign);
    let since = 0;
    asking.listeners.push((busy) => {
      clearTimeout(since);
      if (busy) since = setTimeout(() => (sign.hidden = false), 300);
      else sign.hidden = true;
    });
    return [reachSheet(page, asking), geometrySheet(page, asking), bondsSheet(page, asking), phaseSheet(page, asking), planSheet(page, asking), measuredSheet(page, asking)];
  });
}
