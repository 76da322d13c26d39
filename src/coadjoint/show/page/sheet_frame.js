// The sheet of a frame: where it is, how it moves, what it can do, and a wrench that pulls at it.

import { copyButton, digits, h, section, segmented, vector } from "./elements.js";
import { eigen, position, rotation, toQuaternion } from "./linear.js";
import { program, frameName } from "./python.js";
import { sliderRows } from "./sliders.js";

const KINDS = [
  ["none", "none", "No ellipsoid in the scene."],
  ["velocity", "velocity", "J Jᵀ: velocities of the frame for joint velocities of length one (Yoshikawa)."],
  ["mobility", "mobility", "J M⁻¹ Jᵀ: velocities of the frame at unit kinetic energy vᵀ M v = 1."],
  ["inertia", "inertia", "Λ = (J M⁻¹ Jᵀ)⁻¹: the mass that is felt in each direction."],
];

export function frameSheet(state, show) {
  const { model } = state.mechanism;
  const chooser = h("select", { id: "frame", "aria-label": "frame" }, model.frames.map((frame, k) => h("option", { value: k }, frame.name)));
  chooser.addEventListener("change", () => state.set({ frame: Number(chooser.value) }));
  const where = h("dl", { class: "readings" }), able = h("dl", { class: "readings" }), jacobian = h("tbody");
  const ways = ["moment x", "moment y", "moment z", "force x", "force y", "force z"], most = Math.max(1, 5 * model.mass);
  const pulls = sliderRows(ways.map((label, k) => ({ label, unit: k < 3 ? "N m" : "N", low: k < 3 ? -most * model.size : -most, high: k < 3 ? most * model.size : most, free: true, tip: "of the wrench that acts on the robot at this frame, in space axes" })), (k) => state.wrench[k], (k, x) => state.set({ wrench: state.wrench.map((y, i) => (i === k ? x : y)) }, "slider"));
  const ellipsoid = () => [`E = cj.redundancy.ellipsoid(robot, q, ${frameName(state)}, rows=(3, 4, 5), kind="velocity")`, `w = cj.redundancy.manipulability(robot, q, ${frameName(state)}, rows=(3, 4, 5))`];
  const code = () => program(state, [`T = cj.pose(robot, q, ${frameName(state)})`, `J = cj.jacobian(robot, q, ${frameName(state)})        # body twist = J v, angular rows first`, ...(model.constraints.length ? [] : ellipsoid())]);
  const element = h("div", {}, h("div", { class: "row" }, h("label", { for: "frame" }, "frame"), chooser), section("Pose and twist", "Position in m and rotation in the space frame; the twist is that of the body, J v.", where, copyButton(code)),
    section("Ellipsoid of the linear velocity", "What is drawn at the frame, in its own axes; half-axes the longest first." + (model.constraints.length ? " Along the freedoms that the loops leave." : ""), segmented(KINDS, show.ellipsoid, (kind) => show.set("ellipsoid", kind)), able),
    section("Wrench at the frame", "A moment and a force in space axes that act on the robot; the joint forces that hold it are −Jᵀf.", h("div", { class: "sliders" }, pulls.elements)),
    section("Jacobian", "Body twist (ω, v) = J v: rows ωx ωy ωz vx vy vz, a column for each freedom.", h("div", { class: "scroll" }, h("table", { class: "numbers" }, jacobian))));
  const update = () => {
    const T = state.framePose, { ellipsoids } = state;
    chooser.value = String(state.frame);
    readings(where, [["position", vector(position(T)), "m"], ["quaternion x y z w", vector(toQuaternion(rotation(T))), ""], ["angular velocity", vector(state.twist.slice(0, 3)), "rad/s"], ["linear velocity", vector(state.twist.slice(3)), "m/s"]]);
    const lengths = (A) => (A ? vector(eigen(A).values.map((x) => Math.sqrt(x < 1e-24 * model.size ** 2 ? 0 : x)).reverse()) : "—");
    readings(able, [["manipulability √det J Jᵀ", digits(state.mechanism.manipulability(state.mechanism.free(state.q, state.jacobian.slice(3)).J)), ""], ["velocity", lengths(ellipsoids.velocity), "m/s per rad/s"], ["mobility", lengths(ellipsoids.mobility), "1/√kg"], ["felt mass", ellipsoids.inertia ? vector(eigen(ellipsoids.inertia).values.reverse()) : "∞", "kg"]]);
    jacobian.replaceChildren(...state.jacobian.map((row, k) => h("tr", {}, h("th", {}, ["ωx", "ωy", "ωz", "vx", "vy", "vz"][k]), row.map((x) => h("td", { class: "figure" }, digits(x, 3))))));
    pulls.update();
  };
  return { name: "Frame", element, update };
}

function readings(list, lines) {
  list.replaceChildren(...lines.map(([name, value, unit]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, h("span", { class: "unit" }, ` ${unit}`)))));
}
