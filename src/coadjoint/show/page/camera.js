// A camera that orbits: drag turns it, two fingers or the right button move it, the wheel comes nearer.

import { add, cross, dot, multiply, norm, scale, subtract, unit } from "./linear.js";

const WIDE = Math.tan((32 * Math.PI) / 360);
// The part of the picture's width and height that a robot which moves stays in.
const INSIDE = 0.96;

export class Camera {
  // Up is where gravity does not pull; a robot that moves in an upright plane, or hangs on a wall, has its grid behind it.
  constructor(target, size, floor, gravity) {
    const pull = norm(gravity), above = pull > 0 ? scale(gravity, -1 / pull) : [0, 0, 1], steep = Math.abs(above[2]) > 0.7;
    const side = steep ? [1, 0, 0] : [0, 0, 1], first = unit(subtract(side, scale(above, dot(side, above))));
    this.ways = [first, cross(above, first), above];
    this.home = { target, distance: 1.7 * size, azimuth: steep ? -0.95 : -0.45, elevation: 0.33 };
    this.size = size;
    this.floor = floor;
    this.reset();
  }

  reset() {
    Object.assign(this, { ...this.home, target: this.home.target.slice() });
  }

  // Look at the whole of some points: the middle of what is seen of them is the target, and none is near the edge.
  fit(points, aspect) {
    this.reset();
    const wide = Math.max(1, aspect) * WIDE, tall = wide / aspect, { right, up, back } = this.axes();
    for (let k = 0; k < 12 && points.length; k++) {
      const seen = points.map((p) => [right, up, back].map((axis) => dot(subtract(p, this.target), axis)));
      const across = seen.map(([x, , z]) => x / (this.distance - z) / wide), high = seen.map(([, y, z]) => y / (this.distance - z) / tall);
      const [left, most, low, top] = [Math.min(...across), Math.max(...across), Math.min(...high), Math.max(...high)];
      this.target = add(this.target, add(scale(right, ((left + most) / 2) * wide * this.distance), scale(up, ((low + top) / 2) * tall * this.distance)));
      this.distance = Math.max(1.2 * this.size, Math.max(...seen.map(([, , z]) => z)) + 0.2 * this.size, this.distance * Math.max((most - left) / 2 / 0.8, (top - low) / 2 / 0.72));
    }
  }

  // The distance from which all points are in the picture, with neither a turn nor a move.
  needed(points, aspect) {
    const wide = Math.max(1, aspect) * WIDE, tall = wide / aspect, { right, up, back } = this.axes();
    return Math.max(...points.map((p) => subtract(p, this.target)).map((p) => dot(p, back) + Math.max(Math.abs(dot(p, right)) / wide, Math.abs(dot(p, up)) / tall) / INSIDE));
  }

  eye() {
    const { azimuth: a, elevation: e, distance: d } = this;
    return [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)].reduce((at, x, k) => add(at, scale(this.ways[k], d * x)), this.target);
  }

  axes() {
    const back = unit(subtract(this.eye(), this.target)), right = unit(cross(this.ways[2], back));
    return { right, up: cross(back, right), back };
  }

  // From space to the cube of what is seen, as rows.
  view(aspect) {
    const { right, up, back } = this.axes(), eye = this.eye();
    const look = [[...right, -dot(right, eye)], [...up, -dot(up, eye)], [...back, -dot(back, eye)], [0, 0, 0, 1]];
    const near = 0.01 * this.distance, far = 40 * this.distance + 20 * this.size;
    const tall = aspect < 1 ? WIDE / aspect : WIDE;
    const lens = [[1 / (tall * aspect), 0, 0, 0], [0, 1 / tall, 0, 0], [0, 0, (far + near) / (near - far), (2 * far * near) / (near - far)], [0, 0, -1, 0]];
    return multiply(lens, look);
  }

  // The line of sight through a pixel: where it starts and its direction.
  ray(x, y, canvas) {
    const box = canvas.getBoundingClientRect(), aspect = box.width / box.height, tall = aspect < 1 ? WIDE / aspect : WIDE;
    const u = ((x - box.left) / box.width) * 2 - 1, v = 1 - ((y - box.top) / box.height) * 2, { right, up, back } = this.axes();
    return { from: this.eye(), along: unit(add(add(scale(right, u * tall * aspect), scale(up, v * tall)), scale(back, -1))) };
  }

  // Where a point is seen, in pixels of the canvas's box.
  project(point, canvas) {
    const box = canvas.getBoundingClientRect(), m = this.view(box.width / box.height), p = [...point, 1];
    const [x, y, , w] = m.map((row) => dot(row, p));
    return [box.left + (box.width * (x / w + 1)) / 2, box.top + (box.height * (1 - y / w)) / 2];
  }

  turnBy(dx, dy) {
    this.azimuth -= 0.008 * dx;
    this.elevation = Math.max(-1.5, Math.min(1.5, this.elevation + 0.008 * dy));
  }

  moveBy(dx, dy, height) {
    const { right, up } = this.axes(), s = (2 * WIDE * this.distance) / height;
    this.target = add(this.target, add(scale(right, -dx * s), scale(up, dy * s)));
  }

  nearer(factor) {
    this.distance = Math.max(0.05 * this.size, Math.min(40 * this.size, this.distance * factor));
  }
}

// Pointer, wheel and keys on the canvas. `grab(event)` may take a press for itself; it returns what to call on moves and at the end.
// `whole()` looks at the whole robot.
export function attach(camera, canvas, changed, grab, whole) {
  const held = new Map();
  let taken = null, apart = 0;
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, event);
    taken = held.size === 1 && event.button === 0 ? grab(event) : null;
    apart = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    held.set(event.pointerId, event);
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    if (taken) return taken.move(event);
    if (held.size === 2) {
      const [a, b] = [...held.values()], gap = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      if (apart) camera.nearer(apart / gap);
      apart = gap;
      camera.moveBy(dx / 2, dy / 2, canvas.clientHeight);
    } else if (event.buttons & 2 || event.shiftKey) camera.moveBy(dx, dy, canvas.clientHeight);
    else camera.turnBy(dx, dy);
    changed();
  });
  const leave = (event) => {
    held.delete(event.pointerId);
    taken?.end(event);
    taken = null;
    apart = 0;
  };
  canvas.addEventListener("pointerup", leave);
  canvas.addEventListener("pointercancel", leave);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.nearer(Math.exp(0.0012 * event.deltaY));
    changed();
  }, { passive: false });
  canvas.addEventListener("dblclick", whole);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [24, 0], ArrowRight: [-24, 0], ArrowUp: [0, 24], ArrowDown: [0, -24] }[event.key];
    if (step) camera.turnBy(...step);
    else if (event.key === "+" || event.key === "-") camera.nearer(event.key === "+" ? 0.9 : 1.1);
    else return;
    event.preventDefault();
    changed();
  });
}
