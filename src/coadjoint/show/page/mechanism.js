// A robot at a state: everything that the page shows, computed by the functions of the robot.

import { add, apply, cholesky, cross, dot, eigen, freedoms, move, multiply, norm, position, rotation, rows, scale, solve, subtract, transpose, turn, turnBack, zeros } from "./linear.js";

export class Mechanism {
  constructor(model, programs) {
    this.model = model;
    this.programs = programs;
    this.has = (name) => name in programs;
    this.framePoses = model.frames.map((frame) => rows(frame.pose));
    this.paths = model.frames.map((frame) => this.freedomsBefore(frame.link));
  }

  // The freedoms of the tree on the path from the base to a link.
  freedomsBefore(link) {
    const found = new Set();
    for (let i = link; i >= 0; i = this.model.links[i].parent) {
      const [from, to] = this.model.links[i].joint.tree;
      for (let k = from; k < to; k++) found.add(k);
    }
    return found;
  }

  // Pose of a frame by its number among the model's frames, for the poses of all links.
  framePose(poses, number) {
    const link = this.model.frames[number].link;
    return link < 0 ? this.framePoses[number] : multiply(poses[link], this.framePoses[number]);
  }

  // J (6, nv) at the origin of a point of a link, in space axes: angular rows first.
  jacobianAt(columns, path, point) {
    const tree = columns.map((s, k) => (path.has(k) ? [...s.slice(0, 3), ...add(s.slice(3), cross(s.slice(0, 3), point))] : zeros(6)));
    const J = transpose(tree);
    if (!J.length) return Array.from({ length: 6 }, () => []);
    return this.model.vMap ? multiply(J, this.model.vMap) : J;
  }

  jacobian(q, number, reference = "body", poses = this.programs.poses(q)) {
    const T = this.framePose(poses, number), p = position(T);
    const world = this.jacobianAt(this.programs.columns(q), this.paths[number], reference === "space" ? [0, 0, 0] : p);
    if (reference !== "body") return world;
    const R = transpose(rotation(T));
    return [...multiply(R, world.slice(0, 3)), ...multiply(R, world.slice(3))];
  }

  // The joint forces of a motion by term: their sum is tau.
  terms(q, v, a, load = zeros(this.model.nv)) {
    const P = this.programs, found = {};
    if (P.mass) found["M a"] = apply(P.mass(q), a);
    if (P.coriolis) found["C v"] = P.coriolis(q, v);
    if (P.gravity) found.g = P.gravity(q);
    if (P.springs) found.springs = P.springs(q);
    if (P.friction) found.friction = P.friction(v);
    found["−Jᵀf"] = scale(load, -1);
    return found;
  }

  // The columns of J along the freedoms that the constraints leave, and the mass matrix of these; both as they are without constraints.
  free(q, J) {
    const M = this.programs.mass?.(q);
    if (!this.programs.rows) return { J, M };
    const N = freedoms(this.programs.rows(q), this.model.nv), columns = transpose(N);
    if (!N.length) return { J: J.map(() => [0]), M: [[1]] };
    return { J: multiply(J, columns), M: M && multiply(multiply(N, M), columns) };
  }

  // v moved by the least that makes coordinate k equal to x, along the freedoms that the constraints leave; null where they hold it.
  turned(q, v, k, x) {
    const N = freedoms(this.programs.rows(q), this.model.nv), reach = N.reduce((sum, e) => sum + e[k] * e[k], 0);
    return reach < 1e-12 ? null : N.reduce((sum, e) => add(sum, scale(e, (e[k] * (x - v[k])) / reach)), v);
  }

  // The acceleration next to a that the constraints permit: A a = −(dA/dt) v.
  accelerated(q, v, a) {
    const A = this.programs.rows(q), n = this.model.nv, N = freedoms(A, n), S = multiply(transpose(A), A);
    N.forEach((e) => S.forEach((row, i) => row.forEach((_, j) => (row[j] += e[i] * e[j]))));
    const l = cholesky(S), off = apply(transpose(A), add(apply(A, a), this.programs.bias(q, v)));
    return l ? subtract(a, solve(l, off)) : a;
  }

  // Matrices of the velocity, mobility and inertia ellipsoids of a frame's linear velocity, in body axes.
  ellipsoids(q, number, poses) {
    const { J, M } = this.free(q, this.jacobian(q, number, "body", poses).slice(3)), velocity = multiply(J, transpose(J));
    const factor = M ? cholesky(M) : null;
    if (!factor) return { velocity };
    const mobility = multiply(J, transpose(J.map((row) => solve(factor, row))));
    const l = cholesky(mobility);
    const inertia = l ? [0, 1, 2].map((k) => solve(l, [0, 1, 2].map((i) => (i === k ? 1 : 0)))) : null;
    return { velocity, mobility, inertia };
  }

  // √det(J Jᵀ) by elimination; 0 where a pivot is not positive.
  manipulability(J) {
    const A = multiply(J, transpose(J)), n = A.length;
    let product = 1;
    for (let k = 0; k < n; k++) {
      if (!(A[k][k] > 0)) return 0;
      product *= A[k][k];
      for (let i = k + 1; i < n; i++) {
        const part = A[k][i] / A[k][k];
        for (let j = i; j < n; j++) A[i][j] -= part * A[k][j];
      }
    }
    return Math.sqrt(product);
  }

  // The wrench (moment, force) of a load at a point of a link, both in space axes, as wrenches (n, 6) in the frames of the links.
  wrenches(poses, loads) {
    const all = poses.map(() => zeros(6));
    for (const { link, point, force, moment } of loads) {
      if (link < 0) continue;
      const arm = subtract(point, position(poses[link])), T = poses[link];
      const own = [...turnBack(T, add(moment, cross(arm, force))), ...turnBack(T, force)];
      all[link] = add(all[link], own);
    }
    return all;
  }

  generalized(q, poses, loads) {
    let total = zeros(this.model.nv);
    if (!this.programs.columns) return total;
    const columns = this.programs.columns(q);
    for (const { link, point, force, moment } of loads) {
      const J = this.jacobianAt(columns, this.freedomsBefore(link), point);
      total = add(total, apply(transpose(J), [...moment, ...force]));
    }
    return total;
  }

  // A wrench (moment, force) at the origin of a pose, in its axes, as a screw in space: a line, a pitch, a force and a couple.
  screw(T, wrench) {
    const m = turn(T, wrench.slice(0, 3)), f = turn(T, wrench.slice(3)), size = norm(f), p = position(T);
    if (size < 1e-12 * (1 + norm(m))) return { point: p, direction: norm(m) ? scale(m, 1 / norm(m)) : [0, 0, 1], force: 0, couple: norm(m), pitch: Infinity };
    const pitch = dot(m, f) / (size * size);
    return { point: add(p, scale(cross(f, m), 1 / (size * size))), direction: scale(f, 1 / size), force: size, couple: pitch * size, pitch };
  }

  acceleration(q, v, tau) {
    if (!this.programs.constrained) return this.programs.forward(q, v, tau);
    const [a] = this.programs.constrained(q, v, tau);
    return a.every(Number.isFinite) ? a : this.redundant(q, v, tau).a;
  }

  // Accelerations and multipliers where rows repeat each other: M a + h = tau + Aᵀ λ with the shortest λ.
  redundant(q, v, tau) {
    const free = this.programs.forward(q, v, tau), A = this.programs.rows(q), factor = cholesky(this.programs.mass(q));
    if (!factor) return { a: free.map(() => NaN), multipliers: A.map(() => NaN) };
    const X = A.map((row) => solve(factor, row)), { values, vectors } = eigen(multiply(A, transpose(X)));
    const wanted = scale(add(apply(A, free), this.programs.bias(q, v)), -1), least = 1e-11 * Math.max(...values);
    const parts = apply(transpose(vectors), wanted).map((x, k) => (values[k] > least ? x / values[k] : 0)), multipliers = apply(vectors, parts);
    return { a: add(free, apply(transpose(X), multipliers)), multipliers };
  }

  // q moved onto the constraints, the coordinates in `held` as little as possible; null where that fails.
  assemble(q, held = []) {
    if (!this.programs.residual) return q;
    const weight = zeros(this.model.nv).map((_, k) => (held.includes(k) ? 1e-4 : 1));
    for (let turnNumber = 0; turnNumber < 60; turnNumber++) {
      const r = this.programs.residual(q), all = this.programs.rows(q), A = this.model.holonomic.map((k) => all[k]);
      const size = norm(r);
      if (size < 1e-13 * this.model.size) return q;
      const AW = A.map((row) => row.map((x, k) => x * weight[k])), S = multiply(AW, transpose(A));
      const trace = S.reduce((sum, row, k) => sum + row[k], 0);
      S.forEach((row, k) => (row[k] += 1e-13 * trace + 1e-30));
      const l = cholesky(S);
      if (!l) return null;
      const step = apply(transpose(AW), solve(l, r)), length = norm(step);
      q = this.programs.integrate(q, scale(step, -Math.min(1, 0.5 / (length || 1))));
      if (turnNumber > 20 && size < 1e-10 * this.model.size) return q;
    }
    return null;
  }

  // v without the part that the constraints forbid, by the metric of kinetic energy where that can be.
  project(q, v) {
    if (!this.programs.rows) return v;
    const A = this.programs.rows(q), factor = this.programs.mass ? cholesky(this.programs.mass(q)) : null;
    const X = A.map((row) => (factor ? solve(factor, row) : row)), S = multiply(A, transpose(X));
    const trace = S.reduce((sum, row, k) => sum + row[k], 0);
    S.forEach((row, k) => (row[k] += 1e-13 * trace + 1e-30));
    const l = cholesky(S);
    return l ? subtract(v, apply(transpose(X), solve(l, apply(A, v)))) : v;
  }

  pointOf(poses, link, local) {
    return link < 0 ? local : move(poses[link], local);
  }
}
