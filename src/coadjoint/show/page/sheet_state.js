// The sheet of the state: sliders for q, v and a, energies and the centre of mass.

import { copyButton, digits, h, section, segmented, vector } from "./elements.js";
import { zeros } from "./linear.js";
import { program } from "./python.js";
import { channels, sliderRows } from "./sliders.js";

const TIPS = {
  q: "The coordinates: angles in rad, lengths in m. Rotations of spherical and free joints are shown as rotation vectors; q itself has a quaternion (x, y, z, w).",
  v: "The velocities: rates of q, and the body twist (ω, v) of joints that move as a group.",
  a: "The accelerations dv/dt: the motion whose joint forces the sheet Forces shows.",
};

export function stateSheet(state) {
  const { model } = state.mechanism, forms = {};
  forms.q = coordinateRows(state, model);
  for (const name of ["v", "a"]) forms[name] = rateRows(state, model, name);
  const holder = h("div", { class: "sliders" });
  let shown = "q";
  const choose = (name) => {
    shown = name;
    holder.replaceChildren(...forms[name].elements);
    forms[name].update();
  };
  const buttons = h("div", { class: "row" },
    segmented([["q", "position", TIPS.q], ["v", "velocity", TIPS.v], ["a", "acceleration", TIPS.a]], "q", choose),
    h("span", { class: "spring" }),
    h("button", { type: "button", id: "home", "data-tip": "The start: every joint at zero, or in the middle of its limits where zero is not allowed, or near a limit of an arm.", onclick: () => state.set({ q: state.mechanism.assemble(model.start.slice()) ?? model.start.slice(), v: zeros(model.nv), a: zeros(model.nv) }, "home") }, "home"),
    h("button", { type: "button", id: "random", "data-tip": "A random configuration within the limits.", onclick: () => state.randomize() }, "random"));
  choose("q");
  const readings = h("dl", { class: "readings" });
  const told = h("p", { class: "note" });
  const code = () => program(state, ["T, U = cj.kinetic_energy(robot, q, v), cj.potential_energy(robot, q)", ...(model.mass > 0 ? ["com = cj.center_of_mass(robot, q)"] : [])], ["q", "v"]);
  const element = h("div", {}, buttons, holder, told, section("Energies and centre of mass", `T = ½ vᵀ M v, U = −Σ mᵢ g·cᵢ${model.springs.length ? " + the energy of the springs" : ""}, in J; the centre of mass in m, in the space frame.`, readings, copyButton(code)));
  const update = () => {
    forms[shown].update();
    told.textContent = model.constraints.length ? (state.gap < 1e-9 * (1 + model.size) ? `The loop is closed: |residual| = ${digits(state.gap, 3)}` : `The constraint is not kept: |residual| = ${digits(state.gap, 3)}`) : "";
    const lines = [["kinetic energy", digits(state.kinetic), "J"], ["potential energy", digits(state.potential), "J"], ["together", digits(state.kinetic + state.potential), "J"]];
    if (state.com) lines.push(["centre of mass", vector(state.com), "m"]);
    readings.replaceChildren(...lines.map(([name, value, unit]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, h("span", { class: "unit" }, ` ${unit}`)))));
  };
  return { name: "State", element, update };
}

function coordinateRows(state, model) {
  const rows = channels(model);
  return sliderRows(rows, (k) => rows[k].get(state.q), (k, x) => {
    const q = state.q.slice(), [from, to] = rows[k].joint.v;
    rows[k].set(q, x);
    const kept = state.mechanism.assemble(state.mechanism.programs.normalize(q), Array.from({ length: to - from }, (_, i) => from + i));
    state.set(kept ? permitted(state, kept, state.v, state.a) : {}, "slider");
  });
}

function rateRows(state, model, name) {
  const rows = model.vNames.map((label, k) => {
    const unit = (model.turns[k] ? "rad/s" : "m/s") + (name === "a" ? "²" : ""), most = name === "v" ? model.velocity[k] ?? 3 : 10;
    return { label, unit, low: -most, high: most, free: true, limited: name === "v" && model.velocity[k] !== null };
  });
  return sliderRows(rows, (k) => state[name][k], (k, x) => {
    const { mechanism, q, v } = state, closed = mechanism.has("rows");
    const values = closed ? mechanism.turned(q, state[name], k, x) ?? state[name] : state[name].map((y, i) => (i === k ? x : y));
    state.set(permitted(state, q, name === "v" ? values : v, name === "a" ? values : state.a), "slider");
  });
}

// A state whose velocity and acceleration the constraints permit.
function permitted({ mechanism }, q, v, a) {
  if (!mechanism.has("rows")) return { q, v, a };
  const kept = mechanism.project(q, v);
  return { q, v: kept, a: mechanism.accelerated(q, kept, a) };
}
