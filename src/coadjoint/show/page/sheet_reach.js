// The sheet of inverse kinematics: drag the hand, and move the joints while it stays.

import { digits, h, section, toggle } from "./elements.js";
import { ball } from "./figure.js";
import { norm, position, subtract } from "./linear.js";
import { sliderRows } from "./sliders.js";

export function reachSheet(page, asking) {
  const { state, scene, model } = page, told = h("p", { class: "note" });
  const mine = { turn: model.freedoms >= 6, pose: null, direction: null, at: 0, off: 0, rate: 0 };
  const say = (error, text = "") => {
    told.textContent = error ? error.message : text;
    told.classList.toggle("wrong", Boolean(error));
  };
  const frame = () => model.frames[state.frame].name;
  const forget = () => Object.assign(mine, { pose: null, direction: null, at: 0 });
  const reach = (place) => asking.latest("reach", () => ({ q: state.q, frame: frame(), position: place, pose: mine.pose, turn: mine.turn }), (answer, error) => {
    if (error) return say(error);
    state.set({ q: answer.q }, "reach");
    mine.replies = (mine.replies ?? 0) + 1;
    say(null, answer.reached ? "reached" : `out of reach by ${digits(answer.off, 3)} m: the nearest place`);
  });
  if (scene) {
    scene.extras.push((look) => [ball(position(state.framePose), 0.022 * model.size, look.accent, { over: true, glow: 0.2, alpha: 1 })]);
    scene.grabbers.push((ray, event) => {
      if (page.player.playing) return null;
      const [x, y] = scene.camera.project(position(state.framePose), scene.canvas);
      if (Math.hypot(event.clientX - x, event.clientY - y) > 26) return null;
      const depth = position(state.framePose);
      forget();
      mine.pose = state.framePose;
      return { move: (moved) => reach(scene.inPlane(moved, depth)), end: forget };
    });
  }
  const slide = sliderRows([{ label: "null motion", unit: "√kg m", low: -2, high: 2, free: true, tip: "moves the joints while the frame stays: along the fibre of its pose, at unit speed of the kinetic energy" }], () => mine.at, (_, x) => {
    mine.pose ??= state.framePose;
    const goal = x;
    asking.latest("null", () => ({ q: state.q, frame: frame(), pose: mine.pose, turn: mine.turn, direction: mine.direction, step: Math.max(-0.25, Math.min(0.25, goal - mine.at)) }), (answer, error) => {
      if (error) return say(error);
      mine.at = answer.stopped ? mine.at : mine.at + Math.max(-0.25, Math.min(0.25, goal - mine.at));
      mine.direction = answer.direction;
      state.set({ q: answer.q }, "null");
      say(null, answer.stopped || `the frame moved by ${digits(norm(subtract(position(state.framePose), [0, 1, 2].map((k) => mine.pose[k][3]))), 2)} m`);
    });
  });
  const keep = toggle("keep its orientation", mine.turn, "Whether the frame may turn while it is dragged.", (on) => ((mine.turn = on), forget()));
  const element = h("div", {}, section("Drag the hand", "Drag the orange ball at the frame in the scene: inverse kinematics follows from the present configuration, within the limits.", h("p", {}, "Drag the ball at the frame (choose it on the sheet Frame)."), h("div", { class: "row" }, keep), told), section("Null motion", "What the joints can do while the frame stays: the vertical velocities of the submersion from joints to poses.", h("div", { class: "sliders" }, slide.elements)));
  state.listeners.push((cause) => ["slider", "home", "motion", ""].includes(cause) && forget());
  page.reaching = mine;
  return { name: "Reach", element, update: slide.update };
}
