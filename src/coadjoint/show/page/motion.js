// Motions: a fall computed here step by step, or states that were given.

import { add, scale, subtract, zeros } from "./linear.js";

// One step of Runge and Kutta's method of fourth order for (q, v), dq/dt = rate(q, v), under the joint forces tau(q, v).
export function step(mechanism, q, v, h, tau) {
  const P = mechanism.programs;
  const slope = (q, v) => [P.rate(q, v), mechanism.acceleration(q, v, tau(q, v))];
  const along = ([dq, dv], s) => [add(q, scale(dq, s)), add(v, scale(dv, s))];
  const k1 = slope(q, v), k2 = slope(...along(k1, h / 2)), k3 = slope(...along(k2, h / 2)), k4 = slope(...along(k3, h));
  const mean = (i) => k1[i].map((x, k) => (x + 2 * k2[i][k] + 2 * k3[i][k] + k4[i][k]) / 6);
  let [next, speed] = along([mean(0), mean(1)], h);
  next = P.normalize(next);
  const kept = mechanism.assemble(next);
  if (kept === null) return null;
  speed = mechanism.project(kept, speed);
  return [...kept, ...speed].every(Number.isFinite) ? [kept, speed] : null;
}

// A motion: states by time, kept in order.
export class Motion {
  constructor(name) {
    Object.assign(this, { name, time: [], q: [], v: [] });
  }

  push(t, q, v) {
    this.time.push(t);
    this.q.push(Array.from(q));
    this.v.push(Array.from(v));
  }

  get end() {
    return this.time[this.time.length - 1] ?? 0;
  }

  // The state at a time: between rows, q moves along the tangent vector from one to the next.
  at(t, mechanism) {
    let low = 0, high = this.time.length - 1;
    if (t <= this.time[0] || high === 0) return [this.q[0], this.v[0]];
    if (t >= this.end) return [this.q[high], this.v[high]];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.time[middle] <= t) low = middle;
      else high = middle;
    }
    const s = (t - this.time[low]) / (this.time[high] - this.time[low]);
    const v = add(scale(this.v[low], 1 - s), scale(this.v[high], s));
    const q = mechanism.programs.normalize(this.between(low, high, s, mechanism));
    return [q, v];
  }

  between(low, high, s, mechanism) {
    const a = this.q[low].slice(), b = this.q[high].slice();
    for (const { joint } of mechanism.model.links) {
      const at = joint.kind === "spherical" ? joint.q[0] : joint.kind === "free" ? joint.q[0] + 3 : -1;
      if (at >= 0 && [0, 1, 2, 3].reduce((sum, k) => sum + a[at + k] * b[at + k], 0) < 0) for (let k = at; k < at + 4; k++) b[k] = -b[k];
    }
    return add(scale(a, 1 - s), scale(b, s));
  }
}

// The numbers of a table of states in text: columns time, q.joint or q1, v.joint or v1; separated by commas, semicolons, tabs or spaces.
export function readTable(text, mechanism) {
  const { model } = mechanism;
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim() && !line.startsWith("#"));
  if (lines.length < 2) throw new Error("The table has no rows.");
  const mark = [",", ";", "\t"].find((c) => lines[0].includes(c)) ?? /\s+/;
  const parts = (line) => line.trim().split(mark).map((x) => x.trim().replace(/^"(.*)"$/, "$1"));
  const head = parts(lines[0]), data = lines.slice(1).map((line) => parts(line).map((x) => (x === "" ? NaN : Number(x))));
  const places = (letter, names) => {
    const found = names.map((name, k) => [`${letter}.${name}`, `${letter}${k + 1}`, `${letter}_${k + 1}`].map((x) => head.indexOf(x)).find((x) => x >= 0) ?? -1);
    return found.every((x) => x >= 0) ? found : null;
  };
  const q = places("q", model.qNames), v = places("v", model.vNames);
  const missing = model.qNames.find((name, k) => ![`q.${name}`, `q${k + 1}`, `q_${k + 1}`].some((x) => head.includes(x)));
  if (!q) throw new Error(`The table has no column q.${missing}; its columns are ${head.slice(0, 8).join(", ")}${head.length > 8 ? ", …" : ""}.`);
  const t = ["time", "t", "time [s]"].map((x) => head.indexOf(x)).find((x) => x >= 0) ?? -1;
  const motion = new Motion("table");
  data.forEach((row, k) => {
    const time = t < 0 ? k / 60 : row[t], values = q.map((i) => row[i]), speeds = v ? v.map((i) => row[i]) : zeros(model.nv);
    if (![time, ...values, ...speeds].every(Number.isFinite)) throw new Error(`Row ${k + 2} of the table has a cell that is no number.`);
    if (motion.time.length && time <= motion.end) throw new Error(`Times must increase; row ${k + 2} has ${time} after ${motion.end}.`);
    motion.push(time, mechanism.programs.normalize(values), speeds);
  });
  const first = motion.time[0];
  motion.time = motion.time.map((x) => x - first);
  if (!v && model.nq === model.nv) motion.v = motion.q.map((_, k) => slopes(motion, k));
  return motion;
}

function slopes(motion, k) {
  const a = Math.max(0, k - 1), b = Math.min(motion.q.length - 1, k + 1);
  return a === b ? zeros(motion.q[0].length) : scale(subtract(motion.q[b], motion.q[a]), 1 / (motion.time[b] - motion.time[a]));
}
