// The sheet of geometry: curvature over two coordinates, and the geodesic beside the straight line.

import { Chart, INKS } from "./chart.js";
import { digits, h, section } from "./elements.js";
import { ball, rod } from "./figure.js";
import { Motion } from "./motion.js";
import { mapOf, placeOn } from "./maps.js";

export function geometrySheet(page, asking) {
  const { state, scene, model, player } = page, told = h("p", { class: "note" }), mine = { torus: null, start: null, goal: null, found: null };
  const say = (error, text = "") => {
    told.textContent = error ? error.message : text;
    told.classList.toggle("wrong", Boolean(error));
  };
  const chart = h("canvas", { class: "map", width: 244, height: 244, id: "torus" }), caption = h("p", { class: "note" });
  const choosers = [0, 1].map((k) => h("select", { "aria-label": `coordinate ${k + 1}`, onchange: () => compute([choosers[0].value, choosers[1].value]) }));
  const compute = async (joints = null) => {
    say(null, "computing the curvature …");
    try {
      mine.torus = await asking.ask("torus", { q: state.q, joints });
      choosers.forEach((chooser, k) => {
        chooser.replaceChildren(...mine.torus.choices.map((name) => h("option", { value: name }, name)));
        chooser.value = mine.torus.names[k];
      });
      say(null);
    } catch (error) {
      say(error);
    }
    update();
  };
  const visit = (event) => {
    if (!mine.torus || (event.type === "pointermove" && !event.buttons)) return;
    const [x, y] = placeOn(chart, mine.torus, event), q = state.q.slice();
    [q[mine.torus.places[0]], q[mine.torus.places[1]]] = [x, y];
    state.set({ q }, "torus");
  };
  chart.addEventListener("pointerdown", visit);
  chart.addEventListener("pointermove", visit);
  const energies = new Chart("kinetic energy", "J", "Of both motions, which take one second: that of a geodesic is constant, and its mean is the least of all motions near it.", ["geodesic", "straight"], [INKS[1], "currentcolor"]);
  const keep = (name) => () => ((mine[name] = state.q.slice()), say(null, `${name} is where the robot is now`), scene && (scene.dirty = true));
  const find = async () => {
    if (!mine.start || !mine.goal) return say(new Error("Choose a start and a goal first."));
    say(null, "looking for geodesics …");
    try {
      mine.found = await asking.ask("geodesic", { start: mine.start, goal: mine.goal, frame: model.frames[state.frame].name });
      say(null, `mean kinetic energy: geodesic ${digits(mine.found.means[0])} J, straight ${digits(mine.found.means[1])} J`);
      play(0);
    } catch (error) {
      say(error);
    }
    update();
    if (scene) scene.dirty = true;
  };
  const play = (which) => {
    const motion = new Motion(which ? "straight line" : "geodesic"), { time, q } = mine.found;
    time.forEach((t, k) => {
      const [a, b] = [Math.max(0, k - 1), Math.min(time.length - 1, k + 1)];
      const v = model.nq === model.nv ? q[which][b].map((x, i) => (x - q[which][a][i]) / (time[b] - time[a])) : new Array(model.nv).fill(0);
      motion.push(t, q[which][k], v);
    });
    player.take(motion);
    player.toggle();
  };
  if (scene) scene.extras.push((look) => (mine.found && mine.open ? mine.found.paths.flatMap((path, which) => path.slice(1).flatMap((p, k) => rod(path[k], p, 0.005 * model.size, 0.005 * model.size, which ? look.ink : look.accent, { glow: 0.5 }))).concat(mine.found.paths[0].filter((_, k) => k % 120 === 0).map((p) => ball(p, 0.012 * model.size, look.accent))) : []));
  const element = h("div", {}, section("Sectional curvature", "Of the plane that two coordinates span, over both of them; the others as they are. Teal is positive: neighbouring geodesics meet; amber is negative: they part. Click to go there.", h("div", { class: "row" }, choosers, h("button", { type: "button", id: "curve", onclick: () => compute() }, "compute")), chart, caption), section("Geodesic and straight line", "The motion of a free robot from one configuration to another, beside the straight motion of its joints.", h("div", { class: "row" }, h("button", { type: "button", id: "start", onclick: keep("start") }, "start here"), h("button", { type: "button", id: "goal", onclick: keep("goal") }, "goal here"), h("button", { type: "button", id: "find", class: "primary", onclick: find }, "find"), h("button", { type: "button", onclick: () => mine.found && play(1) }, "play straight")), energies.element), told);
  const update = () => {
    if (mine.torus) caption.textContent = axes(mine.torus) + "; teal positive, amber negative, " + mapOf(chart, mine.torus, mine.torus.sectional, [state.q[mine.torus.places[0]], state.q[mine.torus.places[1]]], mine.found ? mine.found.q.map((rows) => rows.map((q) => mine.torus.places.map((i) => q[i]))) : []) + " 1/(kg m²)";
    if (mine.found) energies.draw(mine.found.time, mine.found.energies, player.now);
  };
  const axes = ({ names, units, low, high }) => names.map((name, k) => `${["across", "upward"][k]}: ${name}, ${digits(low[k], 2)} to ${digits(high[k], 2)} ${units[k]}`).join("; ");
  page.geometry = mine;
  const open = (on) => {
    mine.open = on;
    if (scene) scene.dirty = true;
    if (on && !mine.torus) compute();
  };
  return { name: "Geometry", element, update, open };
}
