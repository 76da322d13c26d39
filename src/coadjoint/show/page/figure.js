// The robot as a list of surfaces, from its poses: rods from joint to joint, joints as joints, ellipsoids of inertia, frames, arrows.

import { creased, simplified } from "./meshes.js";
import { add, dot, eigen, identity, move, multiply, norm, pose, position, rotation, rows, scale, subtract, towards, transpose, turn, unit } from "./linear.js";

const stretch = (R, lengths) => R.map((row) => row.map((x, k) => x * lengths[k]));
const rgb = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);

export const AXES = [rgb("#c8503f"), rgb("#4a9150"), rgb("#3f6fc8")];

// The size of a robot in details that coarse pictures show of its shapes.
const CELLS = 60;

// A rod between two points, from one radius to another.
export function rod(from, to, r0, r1, colour, more = {}) {
  const way = subtract(to, from), length = norm(way);
  if (!(length > 0)) return [];
  return [{ mesh: "tube", world: pose(stretch(towards(way), [1, 1, length]), from), taper: [r0, r1], colour, ...more }];
}

export function ball(at, radius, colour, more = {}) {
  return { mesh: "sphere", world: pose(stretch(identity(3), [radius, radius, radius]), at), colour, ...more };
}

export function arrow(from, way, radius, colour, more = {}) {
  const length = norm(way), head = Math.min(5 * radius, 0.5 * length), tip = add(from, way), neck = subtract(tip, scale(unit(way), head));
  if (!(length > 1e-9)) return [];
  const cone = { mesh: "cone", world: pose(stretch(towards(way), [2.4 * radius, 2.4 * radius, head]), neck), colour, glow: 0.25, ...more };
  return [...rod(from, neck, radius, radius, colour, { glow: 0.25, ...more }), cone];
}

// A couple: a ring of small balls about an axis, with an arrow through it.
export function couple(at, way, radius, colour) {
  const R = transpose(towards(way)), items = [];
  const ring = (k) => add(at, add(scale(R[0], radius * Math.cos(k)), scale(R[1], radius * Math.sin(k))));
  for (let k = 0; k < 20; k++) items.push(...rod(ring((k * 5.2) / 20), ring(((k + 1) * 5.2) / 20), radius * 0.07, radius * 0.07, colour, { glow: 0.25 }));
  items.push(...arrow(ring(5.2), scale(subtract(ring(5.6), ring(5.2)), 1.2), radius * 0.07, colour));
  return items;
}

// The ellipsoid { x : xᵀ A⁻¹ x ≤ 1 }, A in the axes of R, times a length.
export function ellipsoid(at, R, A, size, colour) {
  const { values, vectors } = eigen(A);
  const lengths = values.map((x) => Math.max(size * Math.sqrt(Math.max(x, 0)), 1e-4 * size));
  return { mesh: "fine", world: pose(stretch(multiply(R, vectors), lengths), at), colour, alpha: 0.34 };
}

// A spring: a helix of small rods between two points, or about an axis through one point.
export function helix(from, to, radius, colour, turns = 8) {
  const way = subtract(to, from), R = transpose(towards(norm(way) > 0 ? way : [0, 0, 1])), steps = 10 * turns;
  const at = (k) => add(add(from, scale(way, k / steps)), add(scale(R[0], radius * Math.cos((2 * Math.PI * k) / 10)), scale(R[1], radius * Math.sin((2 * Math.PI * k) / 10))));
  const corners = [from, ...Array.from({ length: steps + 1 }, (_, k) => at(k)), to];
  return corners.slice(1).flatMap((end, k) => rod(corners[k], end, 0.16 * radius, 0.16 * radius, colour));
}

export class Figure {
  constructor(mechanism, renderer) {
    this.mechanism = mechanism;
    const { model } = mechanism;
    this.size = model.size;
    const heaviest = Math.max(...model.links.map((x) => x.mass), 1e-12);
    const slender = Math.min(1, (9 / Math.max(model.links.length, 1)) ** 0.4);
    this.radii = model.links.map((x) => slender * model.size * (0.011 + 0.021 * Math.cbrt(Math.max(x.mass, 0) / heaviest)));
    this.ellipsoids = model.links.map((x) => x.ellipsoid && pose(stretch(x.ellipsoid.axes, x.ellipsoid.radii.map((r) => Math.max(r, 0.004 * model.size))), x.com));
    this.visuals = shapesOf(model, renderer);
  }

  // Surfaces of the robot at the poses of its links. `look`: colours; `show`: what is wanted; `chosen`: a link's number.
  items(poses, look, show, chosen = -2) {
    const found = [], { links } = this.mechanism.model;
    const see = show.bodies && show.visuals && this.visuals.length > 0;
    if (see) for (const { link, mesh, colour, alpha } of this.visuals) {
      const own = link >= 0 && !links[link].possible ? look.wrong : link === chosen ? look.accent : colour ?? look.body;
      found.push({ mesh, world: link < 0 ? identity(4) : poses[link], colour: own, alpha, shadow: true });
    }
    links.forEach((link, i) => {
      const T = poses[i], colour = !link.possible ? look.wrong : i === chosen ? look.accent : look.body;
      if (show.bodies && !see) found.push(...this.body(link, i, T, poses, colour, look));
      if (show.inertia && this.ellipsoids[i]) found.push({ mesh: "sphere", world: multiply(T, this.ellipsoids[i]), colour: link.possible ? look.inertia : look.wrong, alpha: show.bodies ? 0.34 : 0.999, shadow: !show.bodies });
    });
    if (show.bodies && !see) found.push(...this.base(poses, look));
    if (show.bodies && !see) found.push(...this.loops(poses, look));
    if (show.bodies) found.push(...this.springs(poses, look));
    return found;
  }

  body(link, i, T, poses, colour, look) {
    const found = [], r = this.radii[i], { joint } = link, at = move(T, joint.point);
    for (const [a, b] of link.rods) {
      const end = move(T, b);
      found.push(...rod(move(T, a), end, r, 0.8 * r, colour, { shadow: true }), ball(end, 0.8 * r, colour, { shadow: true }));
    }
    if (!link.rods.length && joint.kind === "free" && this.ellipsoids[i]) found.push({ mesh: "fine", world: multiply(T, this.ellipsoids[i]), colour, shadow: true });
    else found.push(ball(at, r, colour, { shadow: true }));
    found.push(...this.joint(link, T, at, r, look), ...this.slide(link, at, r, poses, look));
    return found;
  }

  joint({ joint, possible }, T, at, r, look) {
    const colour = possible ? look.joint : look.wrong;
    if (joint.kind === "fixed" || joint.kind === "free") return [];
    if (joint.kind === "prismatic") return [{ mesh: "box", world: pose(stretch(towards(turn(T, joint.axes[0])), [2.6 * r, 2.6 * r, 3 * r]), at), colour, shadow: true }];
    if (joint.kind === "spherical") return [ball(at, 1.5 * r, colour, { shadow: true })];
    return joint.axes.slice(0, joint.kind === "universal" ? 2 : 1).map((axis) => ({ mesh: "drum", world: pose(stretch(towards(turn(T, axis)), [1.35 * r, 1.35 * r, 1.75 * r]), at), colour, shadow: true }));
  }

  // The way that a sliding joint has gone from home.
  slide(link, at, r, poses, look) {
    if (!["prismatic", "helical", "planar"].includes(link.joint.kind)) return [];
    const parent = link.parent < 0 ? identity(4) : poses[link.parent];
    return rod(move(multiply(parent, rows(link.placement)), link.joint.point), at, 0.55 * r, 0.55 * r, look.joint, { shadow: true });
  }

  // A foot under the robot, and rods from the base to the joints that it carries.
  base(poses, look) {
    const found = [], { links } = this.mechanism.model, r = 0.024 * this.size;
    const roots = links.filter((x) => x.parent < 0 && x.joint.kind !== "free");
    if (!roots.length) return found;
    found.push({ mesh: "drum", world: pose(stretch(identity(3), [2.6 * r, 2.6 * r, 0.35 * r]), [0, 0, 0]), colour: look.joint, shadow: true });
    for (const link of roots) {
      const end = move(rows(link.placement), link.joint.point);
      found.push(...rod([0, 0, 0], end, r, 0.9 * r, look.base, { shadow: true }));
    }
    return found;
  }

  // The joints that close loops.
  loops(poses, look) {
    const r = 1.4 * Math.max(...this.radii, 0);
    return this.mechanism.model.loops.flatMap(({ frame, kind }) => {
      const T = this.mechanism.framePose(poses, frame), at = position(T), axis = scale(turn(T, [0, 0, 1]), 1.5 * r);
      return kind === "spherical" ? [ball(at, 1.1 * r, look.joint, { shadow: true })] : rod(subtract(at, axis), add(at, axis), r, r, look.joint, { shadow: true });
    });
  }

  springs(poses, look) {
    const { links, springs } = this.mechanism.model, r = 0.016 * this.size;
    return springs.flatMap(({ joint, links: ends, points }) => {
      if (joint < 0) return helix(...ends.map((link, k) => this.mechanism.pointOf(poses, link, points[k])), r, look.accent);
      const T = poses[joint], at = move(T, links[joint].joint.point), half = scale(turn(T, links[joint].joint.axes[0]), 1.2 * this.radii[joint]);
      return helix(subtract(at, half), add(at, half), 1.7 * this.radii[joint], look.accent, 4);
    });
  }

  frame(T, length = 0.09 * this.size) {
    const R = transpose(rotation(T));
    return R.flatMap((axis, k) => arrow(position(T), scale(axis, length), 0.045 * length, AXES[k]));
  }

  // The corners of the boxes about the robot's own shapes.
  boxes(poses) {
    return this.visuals.flatMap(({ link, box: [a, b] }) => [0, 1, 2, 3, 4, 5, 6, 7].map((k) => {
      const corner = [0, 1, 2].map((i) => (k & (1 << i) ? b[i] : a[i]));
      return link < 0 ? corner : move(poses[link], corner);
    }));
  }

  // Points that the robot does not reach beyond: of its shapes; or of its rods, frames and bodies.
  corners(poses) {
    const { model } = this.mechanism, found = this.boxes(poses);
    if (found.length) return found;
    model.links.forEach(({ rods, joint, parent }, i) => {
      found.push(...around(move(poses[i], joint.point), 2.2 * this.radii[i]), ...rods.flat().flatMap((x) => around(move(poses[i], x), this.radii[i])));
      if (joint.kind === "free" && this.ellipsoids[i]) for (let k = 0; k < 8; k++) found.push(move(multiply(poses[i], this.ellipsoids[i]), [1, 2, 4].map((bit) => (k & bit ? 1 : -1))));
      if (parent < 0 && joint.kind !== "free") found.push([0, 0, 0]);
    });
    model.frames.forEach((_, k) => found.push(position(this.mechanism.framePose(poses, k))));
    for (const { frame } of model.loops) found.push(...around(position(this.mechanism.framePose(poses, frame)), 3 * Math.max(...this.radii)));
    const shown = this.mechanism.framePose(poses, model.frame);
    return found.concat(transpose(rotation(shown)).map((axis) => add(position(shown), scale(axis, 0.09 * this.size))));
  }

  // The link under a line of sight and the point of it, in its frame; null if there is none.
  pick({ from, along }, poses) {
    let best = null;
    this.mechanism.model.links.forEach((link, i) => {
      const lines = link.rods.length ? link.rods : [[link.com, link.com]];
      for (const [a, b] of lines) {
        const found = nearest(from, along, move(poses[i], a), move(poses[i], b)), reach = 1.8 * this.radii[i] + (link.rods.length ? 0 : 0.06 * this.size);
        if (found.gap < reach && (!best || found.depth < best.depth)) best = { ...found, link: i };
      }
    });
    return best && { link: best.link, point: best.point };
  }
}

const around = (p, r) => [0, 1, 2].flatMap((k) => [r, -r].map((x) => p.map((y, i) => (i === k ? y + x : y))));

// How near a ray passes a segment, how deep, and the segment's point.
function nearest(from, along, a, b) {
  const d = subtract(b, a), w = subtract(a, from), dd = dot(d, d), da = dot(d, along), dw = dot(d, w), aw = dot(along, w);
  const denominator = dd - da * da, s = denominator > 1e-12 * dd && dd > 0 ? Math.max(0, Math.min(1, (da * aw - dw) / denominator)) : 0;
  const point = add(a, scale(d, s)), depth = dot(subtract(point, from), along);
  return { point, depth, gap: depth > 0 ? norm(subtract(point, add(from, scale(along, depth)))) : Infinity };
}

// The robot's own shapes, their corners unpacked: low + step · vertex, in the frame of the link.
function shapesOf(model, renderer) {
  return model.visuals.map(({ link, colour, low, step, vertices, faces, wide }, k) => {
    const grid = new Uint16Array(bytes(vertices)), corners = Float32Array.from(grid, (x, i) => low[i % 3] + step[i % 3] * x);
    const all = wide ? new Uint32Array(bytes(faces)) : new Uint16Array(bytes(faces));
    renderer.keep(`shape ${k}`, creased(corners, all), false, () => {
      const few = simplified(corners, all, model.size / CELLS);
      return creased(few.corners, few.faces);
    });
    const box = [0, 1].map((end) => low.map((x, i) => x + end * 65535 * step[i]));
    return { link, mesh: `shape ${k}`, colour: colour && colour.slice(0, 3), alpha: colour && colour[3] < 0.99 ? Math.max(colour[3], 0.15) : 1, box };
  });
}

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
