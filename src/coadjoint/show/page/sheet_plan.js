// The sheet of optimal motions: from one configuration to another at the least cost, with the joint forces it takes.

import { Chart } from "./chart.js";
import { copyButton, digits, h, section, segmented } from "./elements.js";
import { ball, rod } from "./figure.js";
import { Motion } from "./motion.js";
import { program, pythonList } from "./python.js";

const COSTS = [
  ["effort", "effort", "∫ |τ|² dt"],
  ["action", "action", "∫ ½ vᵀ M v dt: the geodesic"],
  ["energy", "energy", "∫ τᵀ v + |τ|² dt: work and losses"],
  ["time", "time", "As fast as the limits of velocity and effort permit, along any path."],
  ["path", "straight", "The straight motion of the joints, as fast as the limits permit (Bobrow, Dubowsky and Gibson)."],
];

export function planSheet(page, asking) {
  const { state, scene, model, player } = page, told = h("p", { class: "note", id: "planned" }), mine = { start: null, goal: null, cost: "effort", found: null, open: false };
  const say = (error, text = "") => {
    told.textContent = error ? error.message : text;
    told.classList.toggle("wrong", Boolean(error));
  };
  const limited = model.effort.every((x) => x !== null && x > 0);
  const forces = new Chart("joint forces", limited ? "part of their limits" : model.turns.every(Boolean) ? "N m" : "N m, N", "The joint forces that the motion takes, over time.", model.vNames), seconds = h("input", { type: "text", inputmode: "decimal", class: "number", "aria-label": "seconds", placeholder: "auto", "data-tip": "How long the motion takes; empty: twice what the limits of velocity ask for, or 1 s. The fastest ones choose it." });
  const keep = (name) => () => {
    mine[name] = state.q.slice();
    say(null, `${name} is where the robot is now`);
    if (scene) scene.dirty = true;
  };
  const duration = () => (seconds.value.trim() ? Number(seconds.value.replace(",", ".")) : null);
  const find = async () => {
    if (!mine.start || !mine.goal) return say(new Error("Choose a start and a goal first."));
    if (Number.isNaN(duration())) return say(new Error("The seconds must be a number, or empty."));
    say(null, "looking for the motion …");
    try {
      mine.found = await asking.ask("plan", { start: mine.start, goal: mine.goal, cost: mine.cost, duration: duration(), frame: model.frames[state.frame].name });
      mine.asked = { cost: mine.cost, duration: duration(), start: mine.start, goal: mine.goal };
      const motion = (mine.motion = new Motion(`motion of least ${mine.cost}`)), { time, q, v, cost, found } = mine.found;
      time.forEach((t, k) => motion.push(t, q[k], v[k]));
      say(found ? null : new Error(`no optimum was found; the best has cost ${digits(cost)}`), `${digits(time[time.length - 1], 4)} s${["path", "time"].includes(mine.cost) ? "" : `, cost ${digits(cost, 4)}`}`);
      player.take(motion);
      player.toggle();
    } catch (error) {
      say(error);
    }
    update();
  };
  const code = () => {
    if (!mine.asked) return program(state, []);
    const { cost, duration, start, goal } = mine.asked, ends = [`start = np.array(${pythonList(start)})`, `goal = np.array(${pythonList(goal)})`];
    return program(state, [...ends, cost === "path" ? "timing = cj.time_optimal(robot, start + np.linspace(0, 1, 5)[:, None] * (goal - start))" : `motion = cj.optimal_motion(robot, start, goal, ${duration === null || cost === "time" ? "None" : duration}, ${JSON.stringify(cost)}${model.loops.length ? ", constraints=cj.Constraint.loops(robot)" : ""})`], []);
  };
  if (scene) scene.extras.push((look) => (mine.open && mine.found ? [...mine.found.path.slice(1).flatMap((p, k) => rod(mine.found.path[k], p, 0.005 * model.size, 0.005 * model.size, look.accent, { glow: 0.5 })), ball(mine.found.path[0], 0.012 * model.size, look.accent), ball(mine.found.path[mine.found.path.length - 1], 0.012 * model.size, look.accent)] : []));
  const element = h("div", {}, section("Optimal motion", "From a start to a goal within the limits, at the least cost.", h("div", { class: "row" }, h("button", { type: "button", id: "plan-start", onclick: keep("start") }, "start here"), h("button", { type: "button", id: "plan-goal", onclick: keep("goal") }, "goal here"), h("span", { class: "spring" }), h("span", { class: "unit" }, "duration"), seconds, h("span", { class: "unit" }, "s")), segmented(COSTS, "effort", (cost) => (mine.cost = cost)), h("div", { class: "row" }, h("button", { type: "button", id: "plan", class: "primary", onclick: find }, "find")), told, forces.element, copyButton(code)));
  const update = () => {
    if (!mine.found) return;
    const { time, tau, limits } = mine.found;
    forces.draw(time, model.vNames.map((_, k) => tau.map((row) => row[k] / (limited ? limits[k] : 1))), player.motion === mine.motion ? player.now : time[0]);
    if (limited) forces.value.textContent = `at most ${digits(Math.max(...tau.flatMap((row) => row.map((x, k) => Math.abs(x) / limits[k]))), 3)}`;
  };
  page.plan = mine;
  return { name: "Plan", element, update, open: (on) => ((mine.open = on), scene && (scene.dirty = true)) };
}
