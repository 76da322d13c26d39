// The sheet of constraints: click two frames, choose what joins them, see what the joint bears, let it move.

import { digits, h, section, segmented, toggle } from "./elements.js";
import { arrow, ball, rod } from "./figure.js";
import { norm, position, scale } from "./linear.js";
import { Motion } from "./motion.js";

export function bondsSheet(page, asking) {
  const { state, scene, model, player, mechanism } = page, told = h("p", { class: "note" }), list = h("ul", { class: "bonds" });
  const mine = { bonds: [], picked: [], kind: "rod", forces: [], motion: null, frames: [], friction: false, stops: false };
  const say = (error, text = "") => {
    told.textContent = error ? error.message : text;
    told.classList.toggle("wrong", Boolean(error));
  };
  const at = (k) => position(mechanism.framePose(state.poses, k)), number = (name) => model.frames.findIndex((x) => x.name === name);
  let shown = false;
  const pick = (k) => {
    mine.picked = [...mine.picked, k].slice(-2);
    say(null, mine.picked.length < 2 ? `${model.frames[k].name}: click a second frame` : "");
    if (mine.picked.length === 2) {
      const [a, b] = mine.picked[0] && model.frames[mine.picked[0]].link < 0 ? [mine.picked[1], mine.picked[0]] : mine.picked;
      mine.picked = [];
      if (model.frames[a].link === model.frames[b].link) return say(new Error("Both frames are on one link; choose frames on two links."));
      mine.bonds.push({ kind: mine.kind, a: model.frames[a].name, b: model.frames[b].name, at: model.frames[b].link < 0 ? at(a) : null });
      hold();
    }
    if (scene) scene.dirty = true;
  };
  const hold = async () => {
    try {
      const answer = await asking.ask("hold", { q: state.q, v: state.v, bonds: mine.bonds });
      mine.forces = answer.forces;
      state.set({ q: answer.q, v: answer.v }, "hold");
      say(null, mine.bonds.length ? "held; the arrows are what the bonds bear while the robot starts to fall" : "");
    } catch (error) {
      mine.bonds.pop();
      say(error);
    }
    update();
  };
  const go = async () => {
    say(null, "simulating …");
    try {
      const answer = await asking.ask("motion", { q: state.q, v: state.v, bonds: mine.bonds, duration: 4, friction: mine.friction, stops: mine.stops }), motion = new Motion(mine.bonds.length ? "motion under bonds" : "motion");
      answer.time.forEach((t, k) => motion.push(t, answer.q[k], answer.v[k]));
      mine.motion = motion;
      mine.frames = answer.forces ?? [];
      player.take(motion);
      player.toggle();
      say(null, answer.stopped ? `it ended: ${answer.stopped}` : "");
    } catch (error) {
      say(error);
    }
  };
  if (scene) {
    scene.extras.push((look) => (shown ? model.frames.map((_, k) => ball(at(k), 0.012 * model.size, mine.picked.includes(k) ? look.accent : look.inertia, { over: true })) : []));
    const kept = () => shown || (mine.motion && player.motion === mine.motion);  // other motions know nothing of these bonds
    scene.extras.push((look) => (kept() ? mine.bonds : []).flatMap((bond, k) => {
      const [a, b] = [at(number(bond.a)), bond.at && bond.kind === "ball" ? bond.at : at(number(bond.b))], force = mine.forces[k] ?? [0, 0, 0], reach = Math.min((0.3 * model.size) / Math.max(9.81 * model.mass, 1e-9), (0.6 * model.size) / (norm(force) || 1));
      return [...rod(a, b, 0.006 * model.size, 0.006 * model.size, look.joint), ...arrow(a, scale(force, reach), 0.008 * model.size, look.accent, { over: true }), ...(bond.at ? [] : arrow(b, scale(force, -reach), 0.008 * model.size, look.accent, { over: true }))];
    }));
    scene.grabbers.unshift((ray, event) => {
      if (!shown || player.playing) return null;
      const near = model.frames.map((_, k) => [k, Math.hypot(...scene.camera.project(at(k), scene.canvas).map((x, i) => x - [event.clientX, event.clientY][i]))]).sort((x, y) => x[1] - y[1])[0];
      if (!near || near[1] > 12) return null;
      pick(near[0]);
      return { move: () => {}, end: () => {} };
    });
  }
  const choosers = [0, 1].map(() => h("select", {}, model.frames.map((frame, k) => h("option", { value: k }, frame.name))));
  choosers[0].value = String(state.frame);
  const join = h("button", { type: "button", id: "join", onclick: () => ((mine.picked = [Number(choosers[0].value)]), pick(Number(choosers[1].value))) }, "join");
  const element = h("div", {}, section("Bonds", "Click two frames in the scene, or choose them here. A rod keeps their distance; a ball brings them together, or holds the first where it is if the second is the base.", segmented([["rod", "rod", "The distance of both frames stays as it is."], ["ball", "ball", "Both frames meet in a point."]], "rod", (kind) => (mine.kind = kind)), h("div", { class: "row joiner" }, choosers, join), list, told), section("Let it move", "Simulated in Python by an adaptive method of order 8, the constraints kept exactly; dry friction sticks and slips, stops are at the joints' limits.", h("div", { class: "row" }, h("button", { type: "button", class: "primary", id: "go", onclick: go }, "simulate 4 s"), toggle("friction", false, "Viscous and dry friction of the joints.", (on) => (mine.friction = on)), toggle("stops", false, "Stops at the limits of the joints.", (on) => (mine.stops = on)))));
  const update = () => {
    if (mine.motion && player.motion === mine.motion && mine.frames.length) mine.forces = mine.frames[nearest(mine.motion.time, player.now)];
    list.replaceChildren(...mine.bonds.map((bond, k) => h("li", {}, `${bond.kind}: ${bond.a} — ${bond.b}  `, h("span", { class: "figure" }, `${digits(norm(mine.forces[k] ?? [0]), 3)} N `), h("button", { type: "button", onclick: () => (mine.bonds.splice(k, 1), (mine.forces = []), hold()) }, "remove"))));
  };
  state.listeners.push(() => update());
  page.bonds = mine;
  return { name: "Bonds", element, update: () => update(), open: (on) => ((shown = on), scene && (scene.dirty = true)) };
}

function nearest(time, now) {
  let k = time.findIndex((t) => t >= now);
  if (k < 0) k = time.length - 1;
  return k;
}
