// The sheet of the mass matrix: a map of its entries, and its principal values.

import { brief, copyButton, digits, h, section, unit } from "./elements.js";
import { eigen } from "./linear.js";
import { program } from "./python.js";

export function inertiaSheet(state) {
  const { model } = state.mechanism, n = model.nv, small = n <= 8;
  const cells = Array.from({ length: n * n }, () => h("div", { class: "cell" }));
  const grid = h("div", { class: small ? "matrix" : "matrix dense" }, cells);
  grid.style.gridTemplateColumns = `repeat(${n}, minmax(0, 1fr))`;
  const readings = h("dl", { class: "readings" });
  const code = () => program(state, ["M = cj.mass_matrix(robot, q)"]);
  const loops = model.constraints.length ? h("p", { class: "note" }, "Of the tree, its loops open.") : [];
  const element = h("div", {}, loops, section(["Mass matrix", model.turns.every(Boolean) ? unit("kg m²") : []], "T = ½ vᵀ M v. Entries in kg m² for two angles, kg m for an angle and a length, kg for two lengths. Teal is positive, amber negative, both by the size relative to √(M_ii M_jj).", grid, copyButton(code)), section("Principal values", "Eigenvalues of M; with angles and lengths mixed they depend on units.", readings));
  const update = () => {
    const M = state.mass;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const cell = cells[i * n + j], share = Math.max(-1, Math.min(1, M[i][j] / Math.sqrt(Math.abs(M[i][i] * M[j][j])) || 0));
      if (small) cell.textContent = n > 4 ? brief(M[i][j]) : digits(M[i][j], 3);
      cell.style.setProperty("--share", `${(55 * Math.abs(share)).toFixed(1)}%`);
      cell.classList.toggle("negative", share < 0);
      cell.dataset.tip = `M[${i}, ${j}] = ${digits(M[i][j], 6)}   ${model.vNames[i]} × ${model.vNames[j]}`;
    }
    const { values } = eigen(M), low = values[0], high = values[n - 1];
    const lines = [["smallest", digits(low)], ["largest", digits(high)], ["ratio", digits(high / low)], ["definite", low > 0 ? "positive" : "not positive: some motion moves no mass"]];
    readings.replaceChildren(...lines.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  };
  return { name: "Inertia", element, update };
}
