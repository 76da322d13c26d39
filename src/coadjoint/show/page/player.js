// Playing: a fall is computed as it is seen and kept, so that it can be scrubbed; other motions are played from their states.

import { Motion, readTable, step } from "./motion.js";
import { add, scale, subtract, zeros } from "./linear.js";

const LONGEST = 7200;

export class Player {
  constructor(state) {
    Object.assign(this, { state, motion: null, now: 0, playing: false, falling: false, damped: false, speed: 1, listeners: [], error: "" });
    this.step = 1e-3;
  }

  get mechanism() {
    return this.state.mechanism;
  }

  get canFall() {
    return this.mechanism.has("forward") || this.mechanism.has("constrained");
  }

  tell() {
    for (const listener of this.listeners) listener();
  }

  take(motion) {
    Object.assign(this, { motion, falling: false, playing: false, now: motion.time[0], error: "" });
    this.show();
    this.tell();
  }

  table(text, name) {
    try {
      const motion = readTable(text, this.mechanism);
      motion.name = name;
      this.take(motion);
    } catch (error) {
      this.error = error.message;
      this.tell();
    }
  }

  // Let go: from the state that is shown, without joint forces.
  fall() {
    const { q, v } = this.state, speed = this.mechanism.project(q, v);
    this.motion = new Motion("fall");
    this.motion.push(0, q, speed);
    Object.assign(this, { falling: true, playing: true, now: 0, energy: null, error: "" });
    this.tell();
  }

  // What acts on the joints while it falls: damping if wanted, and whatever pulls.
  forces(q, v) {
    const { mechanism, state } = this;
    let tau = zeros(v.length);
    if (this.damped) tau = subtract(tau, damping(mechanism.model, v));
    const loads = state.wrench.some((x) => x) || state.pull ? this.loads(q) : [];
    return loads.length ? add(tau, mechanism.generalized(q, mechanism.programs.poses(q), loads)) : tau;
  }

  // The loads at another configuration: the hand pulls like a spring with a damper at the point that it holds.
  loads(q) {
    const { mechanism, state } = this, poses = mechanism.programs.poses(q), found = [];
    const frame = mechanism.framePose(poses, state.frame);
    if (state.wrench.some((x) => x)) found.push({ link: mechanism.model.frames[state.frame].link, point: [0, 1, 2].map((k) => frame[k][3]), moment: state.wrench.slice(0, 3), force: state.wrench.slice(3) });
    if (state.pull) {
      const point = mechanism.pointOf(poses, state.pull.link, state.pull.local);
      found.push({ link: state.pull.link, point, moment: [0, 0, 0], force: scale(subtract(state.pull.to, point), state.pull.stiffness) });
    }
    return found;
  }

  // Called for every picture with the seconds since the last one.
  advance(seconds) {
    if (!this.playing || !this.motion) return false;
    const until = this.now + this.speed * Math.min(seconds, 0.05);
    if (this.falling && until > this.motion.end) this.compute(until);
    else this.now = until;
    if (!this.falling && this.now >= this.motion.end) this.now = this.motion.time[0];
    if (this.falling && this.now > this.motion.end) this.now = this.motion.end;
    this.show();
    return true;
  }

  compute(until) {
    const { motion, mechanism } = this, began = performance.now();
    let last = motion.q.length - 1, q = motion.q[last], v = motion.v[last], t = motion.end;
    let kept = t;
    while (t < until - 1e-12) {
      const next = step(mechanism, q, v, this.step, (q, v) => this.forces(q, v));
      if (!next) return this.stop("The motion cannot be continued: the mass matrix is singular here, or the loop cannot close.");
      [q, v] = next;
      t += this.step;
      if (t - kept >= 1 / 120 - 1e-9) (motion.push(t, q, v), (kept = t));
      if (performance.now() - began > 24) break;
    }
    if (t > motion.end) motion.push(t, q, v);
    this.now = motion.end;
    if (motion.time.length > LONGEST) this.stop("The recording is a minute long and ends here.");
  }

  stop(error = "") {
    Object.assign(this, { playing: false, falling: false, error });
    this.tell();
  }

  // Show the state at the time `now`; while it falls, its acceleration too.
  show() {
    const [q, v] = this.motion.at(this.now, this.mechanism);
    this.state.set({ q, v, a: this.canFall ? this.mechanism.acceleration(q, v, this.forces(q, v)) : this.state.a }, "motion");
  }

  seek(t) {
    this.now = Math.max(this.motion.time[0], Math.min(this.motion.end, t));
    this.falling = false;
    this.playing = false;
    this.show();
    this.tell();
  }

  toggle() {
    if (!this.motion) return this.fall();
    this.playing = !this.playing;
    if (this.playing && this.motion.name === "fall" && this.now >= this.motion.end - 1e-9) this.falling = true;
    this.tell();
  }
}

function damping(model, v) {
  const tree = zeros(model.treeNv);
  for (const { joint } of model.links) for (let k = joint.tree[0]; k < joint.tree[1]; k++) {
    const rate = model.vMap ? model.vMap[k].reduce((sum, x, i) => sum + x * v[i], 0) : v[k];
    tree[k] = joint.damping[k - joint.tree[0]] * rate;
  }
  return model.vMap ? v.map((_, i) => tree.reduce((sum, x, k) => sum + x * model.vMap[k][i], 0)) : tree;
}
