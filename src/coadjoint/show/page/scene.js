// The scene: what is drawn for a state, in the colours of the page.

import { AXES, arrow, ball, couple, ellipsoid, Figure } from "./figure.js";
import { Camera, attach } from "./camera.js";
import { Renderer } from "./render.js";
import { add, dot, norm, position, rotation, scale, subtract, turn } from "./linear.js";

const colour = (style, name) => {
  const text = style.getPropertyValue(name).trim();
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);
};

// How often its distance at home the camera steps back after a robot that moves.
const FARTHEST = 4;

export class Scene {
  constructor(canvas, state, show) {
    const { model } = state.mechanism;
    Object.assign(this, { canvas, state, show, extras: [], grabbers: [] });
    this.renderer = new Renderer(canvas);
    this.figure = new Figure(state.mechanism, this.renderer);
    const low = Math.min(...state.poses.map((T) => T[2][3]), ...state.mechanism.framePoses.map((_, k) => state.mechanism.framePose(state.poses, k)[2][3]));
    const rooted = model.links.some((x) => x.parent < 0 && x.joint.kind !== "free");
    const shapes = Math.min(Infinity, ...this.figure.boxes(state.poses).map((p) => p[2]));
    this.floor = Number.isFinite(shapes) && !rooted ? shapes - 0.002 * model.size : rooted ? Math.min(0, Number.isFinite(low) ? low : 0) - (low < 0 ? 0.03 * model.size : 0) : low - 0.06 * model.size;
    this.camera = new Camera(model.centre.slice(), model.size, this.floor, model.gravity);
    this.dirty = true;
    this.drawn = -1000;
    this.interval = 16;
    attach(this.camera, canvas, () => ((this.dirty = true), (this.whole = false)), (event) => this.grab(event), () => this.fit());
    this.fit();
    this.recolour();
  }

  recolour() {
    const style = getComputedStyle(document.documentElement), { model } = this.state.mechanism, get = (name) => colour(style, name);
    const cell = 10 ** Math.round(Math.log10(model.size / 8));
    this.look = { paper: get("--scene"), ink: get("--ink"), body: get("--body"), base: get("--base"), joint: get("--joint"), accent: get("--accent"), inertia: get("--inertia"), wrong: get("--wrong"), sky: get("--sky"), ground: get("--ground"), floor: this.floor, middle: model.centre, reach: 3.2 * model.size, cell, grid: true, shadow: Number(style.getPropertyValue("--shadow")) };
    this.dirty = true;
  }

  // Look at the whole robot, at its present state and along the motion, if there is one.
  fit() {
    const { state } = this, { mechanism } = state, q = this.motion?.q ?? [], every = Math.max(1, Math.floor(q.length / 12));
    const all = [state.poses, ...q.filter((_, k) => k % every === 0).map((x) => mechanism.programs.poses(x))];
    this.camera.fit(all.flatMap((poses) => this.corners(poses)), this.aspect());
    this.dirty = this.whole = true;
  }

  // A robot that was whole in the picture stays so when it moves: the camera steps back as far as that takes. It stands still while
  // something is dragged, and where whoever looks came nearer.
  follow() {
    const { camera, state, held } = this, points = held ? [] : this.corners(state.poses);
    if (!points.length) return;
    const needed = camera.needed(points, this.aspect());
    if (this.whole) camera.distance = Math.max(camera.distance, Math.min(needed, FARTHEST * camera.home.distance));
    this.whole = needed <= camera.distance * (1 + 1e-9);
  }

  corners(poses) {
    return this.figure.corners(poses).filter((p) => p.every(Number.isFinite));
  }

  aspect() {
    return this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight) || 1;
  }

  grab(event) {
    const ray = this.camera.ray(event.clientX, event.clientY, this.canvas);
    for (const grabber of this.grabbers) {
      const taken = grabber(ray, event);
      if (!taken) continue;
      this.held = true;
      return { move: taken.move, end: (last) => ((this.held = false), (this.dirty = true), taken.end(last)) };
    }
    return null;
  }

  // The point under a pixel in the plane through `point` that faces the camera.
  inPlane(event, point) {
    const { from, along } = this.camera.ray(event.clientX, event.clientY, this.canvas), { back } = this.camera.axes();
    return add(from, scale(along, dot(subtract(point, from), back) / dot(along, back)));
  }

  draw() {
    this.follow();
    const { state, show, figure, look } = this, { model } = state.mechanism, size = model.size;
    const items = figure.items(state.poses, look, show, state.link);
    if (show.frames) for (let k = 0; k < model.frames.length; k++) items.push(...figure.frame(state.mechanism.framePose(state.poses, k), 0.06 * size));
    items.push(...figure.frame(state.framePose));
    if (show.com && state.com) items.push(ball(state.com, 0.014 * size, look.accent, { glow: 0.4, over: true }));
    if (show.ellipsoid !== "none" && state.ellipsoids[show.ellipsoid]) items.push(this.ellipsoid());
    if (show.reactions && state.reactions) items.push(...this.reactions());
    for (const { point, force, moment } of state.loads) {
      const strength = Math.max(9.81 * model.mass, 1e-9);
      items.push(...arrow(subtract(point, scale(force, (0.4 * size) / strength)), scale(force, (0.4 * size) / strength), 0.009 * size, look.accent));
      if (norm(moment) > 0) items.push(...couple(point, moment, 0.06 * size, look.accent));
    }
    for (const extra of this.extras) items.push(...extra(look));
    this.renderer.draw(items, this.camera, look);
    this.dirty = false;
  }

  ellipsoid() {
    const { state, show } = this, A = state.ellipsoids[show.ellipsoid], T = state.framePose;
    const largest = Math.sqrt(Math.max(...A.map((row, k) => row[k]), 1e-12));
    return ellipsoid(position(T), rotation(T), A, (0.22 * state.mechanism.model.size) / largest, AXES[2]);
  }

  reactions() {
    const { state, look } = this, { model } = state.mechanism, strength = Math.max(9.81 * model.mass, 1e-9), reach = (0.25 * model.size) / strength;
    return state.reactions.flatMap((wrench, i) => {
      const T = state.poses[i], s = state.mechanism.screw(T, wrench), near = nearJoint(s, T, model.links[i].joint.point), found = arrow(near, scale(s.direction, s.force * reach), 0.007 * model.size, i === state.link ? look.accent : look.inertia);
      if (Math.abs(s.couple) > 1e-9 * strength * model.size) found.push(...couple(near, scale(s.direction, Math.sign(s.couple)), 0.022 * model.size + 0.05 * model.size * Math.min(1, Math.abs(s.couple) / (strength * model.size)), i === state.link ? look.accent : look.inertia));
      return found;
    });
  }
}

// The point of a screw's axis nearest to a joint.
function nearJoint(screw, T, local) {
  const at = add(turn(T, local), position(T)), d = screw.direction;
  return add(screw.point, scale(d, dot(subtract(at, screw.point), d)));
}
