// The state that the page shows, and what follows from it, computed once for each state.

import { add, apply, norm, position, scale, zeros } from "./linear.js";

export class State {
  constructor(mechanism) {
    const { model } = mechanism;
    this.mechanism = mechanism;
    this.q = model.start.slice();
    this.v = zeros(model.nv);
    this.a = zeros(model.nv);
    this.frame = model.frame;
    this.wrench = zeros(6);
    this.pull = null;
    this.link = -2;
    this.listeners = [];
    this.known = {};
  }

  // Set some of q, v, a, frame, wrench, pull, link and tell everybody.
  set(changes, cause = "") {
    Object.assign(this, changes);
    this.known = {};
    for (const listener of this.listeners) listener(cause);
  }

  once(name, make) {
    if (!(name in this.known)) this.known[name] = make();
    return this.known[name];
  }

  get poses() {
    return this.once("poses", () => this.mechanism.programs.poses(this.q));
  }

  get framePose() {
    return this.once("frame", () => this.mechanism.framePose(this.poses, this.frame));
  }

  get mass() {
    return this.once("mass", () => this.mechanism.programs.mass(this.q));
  }

  get com() {
    return this.once("com", () => this.mechanism.programs.com?.(this.q));
  }

  get kinetic() {
    return this.once("kinetic", () => this.mechanism.programs.kinetic?.(this.q, this.v) ?? NaN);
  }

  get potential() {
    return this.once("potential", () => this.mechanism.programs.potential?.(this.q) ?? NaN);
  }

  get jacobian() {
    return this.once("jacobian", () => this.mechanism.jacobian(this.q, this.frame, "body", this.poses));
  }

  get twist() {
    return this.once("twist", () => apply(this.jacobian, this.v));
  }

  // What pulls at the robot: the wrench at the frame, moment and force in space axes, and the hand of the user.
  get loads() {
    return this.once("loads", () => {
      const { model } = this.mechanism, found = [];
      if (this.wrench.some((x) => x !== 0)) found.push({ link: model.frames[this.frame].link, point: position(this.framePose), moment: this.wrench.slice(0, 3), force: this.wrench.slice(3) });
      if (this.pull) found.push(this.pull);
      return found;
    });
  }

  get load() {
    return this.once("load", () => (this.loads.length ? this.mechanism.generalized(this.q, this.poses, this.loads) : zeros(this.mechanism.model.nv)));
  }

  get terms() {
    return this.once("terms", () => this.mechanism.terms(this.q, this.v, this.a, this.load));
  }

  get tau() {
    return this.once("tau", () => Object.values(this.terms).reduce(add));
  }

  get reactions() {
    return this.once("reactions", () => this.mechanism.programs.reactions?.(this.q, this.v, this.a, this.mechanism.wrenches(this.poses, this.loads)));
  }

  get ellipsoids() {
    return this.once("ellipsoids", () => this.mechanism.ellipsoids(this.q, this.frame, this.poses));
  }

  // How far the constraints are from being kept.
  get gap() {
    return this.once("gap", () => (this.mechanism.programs.residual ? norm(this.mechanism.programs.residual(this.q)) : 0));
  }

  randomize() {
    this.set({ q: this.mechanism.assemble(randomOf(this.mechanism.model)) ?? this.q });
  }
}

function randomOf(model) {
  const q = model.neutral.slice();
  for (const { joint } of model.links) {
    if (joint.mimic) continue;
    const [from, to] = joint.q;
    for (let k = from; k < to; k++) {
      const low = joint.lower[k - from] ?? (joint.kind === "prismatic" ? -0.3 * model.size : -2), high = joint.upper[k - from] ?? (joint.kind === "prismatic" ? 0.3 * model.size : 2);
      q[k] = low + (high - low) * Math.random();
    }
    const quaternion = joint.kind === "spherical" ? from : joint.kind === "free" ? from + 3 : -1;
    if (quaternion >= 0) {
      const x = Array.from({ length: 4 }, () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random()));
      scale(x, 1 / norm(x)).forEach((y, k) => (q[quaternion + k] = y));
    }
    if (joint.kind === "free") for (let k = from; k < from + 3; k++) q[k] = 0;
  }
  return q;
}
