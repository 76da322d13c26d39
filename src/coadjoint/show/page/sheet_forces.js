// The sheet of the joint forces: by term, and the wrench that each joint bears.

import { beside, copyButton, digits, h, named, section, unit, vector } from "./elements.js";
import { program, frameName, pythonList } from "./python.js";

const TIPS = {
  "M a": "M(q) a: what accelerates the masses, armature included.",
  "C v": "C(q, v) v: Coriolis and centrifugal forces.",
  g: "g(q) = ∂U/∂q: what holds the robot against gravity.",
  springs: "∂U/∂q of the springs: what holds the robot against them.",
  friction: "viscous and dry friction, d v + c sign(v).",
  "−Jᵀf": "minus the pullback of the wrench at the frame (sheet Frame).",
};

export function forcesSheet(state, show) {
  const { model } = state.mechanism, names = Object.keys(state.terms);
  const legend = h("div", { class: "legend" }, names.map((name, k) => h("span", { "data-tip": TIPS[name] }, h("i", { class: `ink ink${k}` }), name)));
  const lines = model.vNames.map((name, k) => {
    const bars = names.map((_, i) => h("i", { class: `bar ink${i}` })), limit = h("i", { class: "limit" }), value = h("td", { class: "figure" });
    const cells = names.map(() => h("td", { class: "figure term" }));
    const row = h("tr", {}, h("th", { "data-tip": `${name}, in ${model.turns[k] ? "N m" : "N"}${model.effort[k] === null ? "" : `; at most ${digits(model.effort[k])}`}` }, name), cells, value);
    const graph = h("div", { class: "bars" }, h("i", { class: "zero" }), bars, limit);
    return { row, bars, value, cells, limit, bar: h("div", { class: "barline" }, named(name), graph) };
  });
  const table = h("div", { class: "scroll" }, h("table", { class: "numbers" }, h("thead", {}, h("tr", {}, h("th", {}, "joint"), names.map((name) => h("th", { "data-tip": TIPS[name] }, name)), h("th", { "data-tip": `τ = ${sumOf(names)}, in N m for angles, in N for lengths.` }, "τ"))), h("tbody", {}, lines.map((x) => x.row))));
  const reactions = h("tbody");
  const code = () => program(state, [
    `tau = cj.inverse_dynamics(robot, q, v, a, friction=True)`,
    ...(state.wrench.some((x) => x) ? [`J = cj.jacobian(robot, q, ${frameName(state)}, "world")`, `tau = tau - J.T @ ${pythonList(state.wrench)}             # moment and force in space axes, at the frame`] : []),
    ...(state.mechanism.has("reactions") && !state.wrench.some((x) => x) ? ["F = cj.joint_reactions(robot, q, v, a)    # the wrench (moment, force) through each joint, in its link's frame"] : []),
  ], ["q", "v", "a"]);
  const bear = section("Joint reactions", "The wrench that each joint passes to the link it carries, as a screw in space: the force along an axis, the couple about it, and the axis's point nearest to the link's frame.",
    h("label", { class: "check" }, check(show, "reactions"), " draw them in the scene"),
    h("div", { class: "scroll" }, h("table", { class: "numbers screws" }, h("thead", {}, h("tr", {}, h("th", {}, "joint"), h("th", {}, "force [N]"), h("th", {}, "couple [N m]"), h("th", { "data-tip": "couple over force" }, "pitch [m]"), h("th", { "data-tip": "a point of the axis, in space" }, "through [m]"))), reactions)));
  const loops = model.constraints.length ? h("p", { class: "note" }, "The joint forces with which the loops bear nothing: τ = M a + C v + g of the tree. Other forces that differ by Aᵀλ make the same motion.") : [];
  const element = h("div", {}, legend, h("div", { class: "barchart" }, lines.map((x) => x.bar)), loops, section(["Joint forces by term", one(model.turns)], `τ = ${sumOf(names)}, in N m for angles, in N for lengths.`, table, copyButton(code)), state.mechanism.has("reactions") ? bear : []);
  const update = () => {
    const { terms, tau } = state, all = names.map((name) => terms[name]);
    const top = lines.map((_, k) => Math.max(sum(all.map((x) => Math.max(0, x[k]))), sum(all.map((x) => Math.max(0, -x[k])))));
    const largest = [false, true].map((turns) => Math.max(1e-9, ...top.filter((_, k) => model.turns[k] === turns)));  // N and N m have scales of their own
    lines.forEach((line, k) => {
      const most = largest[Number(model.turns[k])];
      let up = 0, down = 0;
      all.forEach((term, i) => {
        const width = (50 * Math.abs(term[k])) / most, at = term[k] >= 0 ? 50 + up : 50 - down - width;
        if (term[k] >= 0) up += width;
        else down += width;
        Object.assign(line.bars[i].style, { left: `${at}%`, width: `${width}%` });
        line.cells[i].textContent = digits(beside(term[k], most), 3);
      });
      const effort = model.effort[k], beyond = effort !== null && Math.abs(tau[k]) > effort;
      line.value.textContent = digits(beside(tau[k], most), 3);
      line.row.classList.toggle("wrong", beyond);
      line.limit.style.left = `${50 + (50 * tau[k]) / most}%`;
    });
    if (state.mechanism.has("reactions")) reactions.replaceChildren(...state.reactions.map((wrench, i) => {
      const s = state.mechanism.screw(state.poses[i], wrench), couple = beside(s.couple, (s.force + 1e-9) * model.size);
      return h("tr", { class: i === state.link ? "chosen" : "", onclick: () => state.set({ link: i }) }, h("th", { "data-tip": model.links[i].joint.name }, named(model.links[i].joint.name)), h("td", { class: "figure" }, digits(s.force, 3)), h("td", { class: "figure" }, digits(couple, 3)), h("td", { class: "figure" }, digits(couple ? s.pitch : 0, 3)), h("td", { class: "figure" }, vector(s.point, 2)));
    }));
  };
  return { name: "Forces", element, update };
}

const sumOf = (names) => names.join(" + ").replace("+ −", "− ");
// The unit of all joint forces, where it is one.
const one = (turns) => (turns.every(Boolean) ? unit("N m") : turns.some(Boolean) ? [] : unit("N"));
const sum = (x) => x.reduce((a, b) => a + b, 0);

export function check(show, key) {
  const box = h("input", { type: "checkbox" });
  box.checked = show[key];
  show.watched.push(() => (box.checked = show[key]));
  box.addEventListener("change", () => show.set(key, box.checked));
  return box;
}

