// Sliders for every freedom: coordinates as they are, rotations as rotation vectors, followers of other joints to look at.

import { digits, h, named } from "./elements.js";
import { fromVector, toVector } from "./linear.js";

const ROTATION = ["rx", "ry", "rz"];

// The sliders of q: { label, unit, low, high, get(q), set(q, x) }.
export function channels(model) {
  const found = [];
  for (const { joint } of model.links) {
    const [from, to] = joint.q;
    if (joint.mimic) {
      const { ratio, offset } = joint.mimic;
      found.push({ label: joint.name, follows: joint.mimic.joint, unit: unitOf(joint), ...range(joint, 0, model), get: (q) => ratio * q[from] + offset });
      continue;
    }
    const quaternion = joint.kind === "spherical" ? from : joint.kind === "free" ? from + 3 : to;
    for (let k = from; k < Math.min(to, quaternion); k++) found.push({ label: model.qNames[k], unit: unitOf(joint, k - from), ...range(joint, k - from, model), joint, get: (q) => q[k], set: (q, x) => (q[k] = x) });
    for (let axis = 0; axis < 3 && quaternion < to; axis++) found.push({
      label: `${joint.name}.${ROTATION[axis]}`,
      tip: "a component of the rotation vector, in rad",
      unit: "rad",
      low: -Math.PI,
      high: Math.PI,
      joint,
      get: (q) => toVector(q.slice(quaternion, quaternion + 4))[axis],
      set: (q, x) => {
        const w = toVector(q.slice(quaternion, quaternion + 4));
        w[axis] = x;
        fromVector(w).forEach((y, i) => (q[quaternion + i] = y));
      },
    });
  }
  return found;
}

function unitOf(joint, part = 0) {
  if (joint.kind === "prismatic") return "m";
  if (joint.kind === "planar") return part < 2 ? "m" : "rad";
  return joint.kind === "free" ? "m" : "rad";
}

function range(joint, part, model) {
  const low = joint.lower[part] ?? null, high = joint.upper[part] ?? null, wide = unitOf(joint, part) === "rad" ? Math.PI : model.size;
  const limited = low !== null && high !== null;
  return { low: low ?? Math.min(-wide, (high ?? 0) - wide), high: high ?? Math.max(wide, (low ?? 0) + wide), limited };
}

// Rows of sliders; `change(k, x)` is called while one is moved, `read(k)` gives its value.
export function sliderRows(rows, read, change) {
  const made = rows.map((row, k) => {
    const slider = h("input", { type: "range", min: row.low, max: row.high, step: "any", "aria-label": row.label, disabled: !row.set && !row.free });
    const number = h("input", { type: "text", inputmode: "decimal", class: "number", "aria-label": `${row.label}, number`, disabled: !row.set && !row.free });
    slider.addEventListener("input", () => change(k, Number(slider.value)));
    number.addEventListener("change", () => {
      const x = Number(number.value.replace("−", "-").replace(",", "."));
      if (number.value.trim() && Number.isFinite(x)) change(k, x);
      else number.value = digits(read(k));
    });
    number.addEventListener("focus", () => number.select());
    const tip = row.follows ? `follows ${row.follows}` : row.tip ?? (row.limited ? `from ${digits(row.low)} to ${digits(row.high)} ${row.unit}` : `no limits; in ${row.unit}`);
    const element = h("div", { class: row.follows ? "slider follower" : "slider" }, h("label", { "data-tip": `${row.label}: ${tip}` }, named(row.label)), slider, number, h("span", { class: "unit" }, row.unit));
    return { element, slider, number, row };
  });
  const update = () => made.forEach(({ slider, number, element, row }, k) => {
    const x = read(k);
    slider.value = x;
    if (document.activeElement !== number) number.value = digits(x);
    slider.style.setProperty("--at", `${100 * Math.max(0, Math.min(1, (x - row.low) / (row.high - row.low || 1)))}%`);
    slider.style.setProperty("--zero", `${100 * Math.max(0, Math.min(1, -row.low / (row.high - row.low || 1)))}%`);
    element.classList.toggle("beyond", row.limited === true && (x < row.low - 1e-9 || x > row.high + 1e-9));
  });
  return { elements: made.map((x) => x.element), update };
}
