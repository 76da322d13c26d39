// The page: a robot, its state, a scene and sheets of numbers.

import { digits, h, tips, toggle } from "./elements.js";
import { subtract, scale, move, rotation, transpose, apply, position } from "./linear.js";
import { Mechanism } from "./mechanism.js";
import { Motion } from "./motion.js";
import { Player } from "./player.js";
import { Scene } from "./scene.js";
import { State } from "./state.js";
import { equationsSheet } from "./sheet_equations.js";
import { forcesSheet } from "./sheet_forces.js";
import { frameSheet } from "./sheet_frame.js";
import { inertiaSheet } from "./sheet_inertia.js";
import { modelSheet } from "./sheet_model.js";
import { motionSheet, transport } from "./sheet_motion.js";
import { stateSheet } from "./sheet_state.js";

const read = (id) => JSON.parse(document.getElementById(id).textContent);

export function start(programs) {
  return build(programs, () => []);
}

// Build the page for the functions of a robot; `more(page)` may add sheets.
export function build(programs, more) {
  const model = read("model"), mechanism = new Mechanism(model, programs), state = new State(mechanism);
  state.q = mechanism.assemble(state.q) ?? state.q;
  const show = { bodies: true, visuals: model.visuals.length > 0, inertia: false, frames: false, com: true, reactions: false, ellipsoid: "none", watched: [] };
  const page = { model, mechanism, state, show, player: new Player(state), scene: null, sheets: [] };
  show.set = (key, value) => {
    show[key] = value;
    show.watched.forEach((look) => look());
    if (page.scene) page.scene.dirty = true;
  };
  window.coadjoint = page;
  header(page);
  try {
    page.scene = new Scene(document.getElementById("scene"), state, show);
  } catch (error) {
    document.getElementById("told").textContent = error.message;
  }
  if (page.scene) tools(page);
  sheets(page, more);
  tips();
  drops(page);
  if (model.motion) page.player.take(unpacked(model));
  if (model.motion && page.scene) (page.scene.motion = page.player.motion), page.scene.fit();
  run(page);
  return page;
}

function header({ model, scene }) {
  const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`, facts = [many(model.links.length, "link"), many(model.freedoms, "freedom"), `${digits(model.mass)} kg`];
  const theme = h("button", { type: "button", id: "theme", "aria-label": "light or dark", "data-tip": "Light or dark." }, "◐");
  theme.addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    window.coadjoint.scene?.recolour();
    window.coadjoint.refresh();
  });
  document.getElementById("head").append(h("h1", {}, model.name), h("p", {}, facts.join("  ·  ")), h("span", { class: "spring" }), h("span", { class: "mark", "data-tip": "Every number on this page is computed in it, by functions that coadjoint wrote as JavaScript; SI units, radians, twists (ω, v) and wrenches (moment, force) angular part first." }, "coadjoint"), theme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.coadjoint.scene?.recolour());
}

function tools({ model, show, scene, mechanism }) {
  const all = [
    model.visuals.length ? ["shapes", "visuals", "The robot's own shapes; else rods from joint to joint."] : null,
    ["bodies", "bodies", "Bodies."],
    ["inertia", "inertia", "For each link the homogeneous ellipsoid with its mass and inertia; red where no body can have it."],
    ["frames", "frames", "Every frame: x red, y green, z blue."],
    mechanism.has("com") ? ["centre of mass", "com", "The centre of mass of the whole robot."] : null,
    mechanism.has("reactions") ? ["reactions", "reactions", "The wrench through each joint as a screw: force along its axis, couple about it."] : null,
  ].filter(Boolean);
  const switches = all.map(([label, key, tip]) => {
    const button = toggle(label, show[key], tip, (on) => show.set(key, on));
    show.watched.push(() => button.setAttribute("aria-pressed", String(show[key])));
    return button;
  });
  document.getElementById("tools").append(...switches, h("button", { type: "button", "data-tip": "Look at the whole robot (double click).", onclick: () => scene.fit() }, "fit"));
}

function sheets(page, more) {
  const { state, show, player, mechanism, model } = page, saved = read("saved"), nav = document.getElementById("tabs"), holder = document.getElementById("sheets");
  const equations = document.getElementById("equations").content;
  if (model.nv) page.sheets.push(stateSheet(state), forcesSheet(state, show));
  if (mechanism.has("mass")) page.sheets.push(inertiaSheet(state));
  if (model.nv) page.sheets.push(frameSheet(state, show), motionSheet(state, player));
  page.sheets.push(...more(page), modelSheet(state, saved));
  if (equations.childElementCount) page.sheets.push(equationsSheet(equations));
  const moveBar = transport(document.getElementById("transport"), player);
  let chosen = page.sheets[0];
  const tabs = page.sheets.map((sheet) => h("button", { type: "button", role: "tab", id: `tab-${sheet.name}`, onclick: () => page.open(sheet.name) }, sheet.name));
  nav.append(...tabs);
  page.open = (name) => {
    chosen.open?.(false);
    chosen = page.sheets.find((sheet) => sheet.name === name) ?? chosen;
    chosen.open?.(true);
    tabs.forEach((tab, k) => tab.setAttribute("aria-selected", String(page.sheets[k] === chosen)));
    holder.replaceChildren(chosen.element);
    holder.closest("main").classList.toggle("reading", chosen.name === "Equations");  // formulas are long
    chosen.update();
  };
  page.chosen = () => chosen;
  page.refresh = () => {
    if (page.scene) page.scene.dirty = true;
    chosen.update();
    moveBar();
  };
  // Numbers that change with every picture are written in every second one: to lay out the text takes longer than to draw a robot.
  let waiting = false, written = false;
  const soon = () => {
    if (page.scene) page.scene.dirty = true;
    waiting = true;
  };
  page.settle = () => {
    written = waiting && !written;
    if (written) (waiting = false), page.refresh();
  };
  state.listeners.push(soon);
  player.listeners.push(soon);
  page.open(chosen.name);
  moveBar();
}

// Pulling at a link while it falls: a spring from the point that was grabbed to the pointer.
function pulling({ state, player, scene, model }) {
  scene.grabbers.push((ray, event) => {
    if (!player.falling || !player.playing) return null;
    const hit = scene.figure.pick(ray, state.poses);
    if (!hit) return null;
    const T = state.poses[hit.link], local = apply(transpose(rotation(T)), subtract(hit.point, position(T)));
    const stiffness = (6 * 9.81 * Math.max(model.mass, 1e-6)) / model.size;
    const pull = (to) => {
      const point = move(state.poses[hit.link], local);
      state.set({ pull: { link: hit.link, local, to, stiffness, point, moment: [0, 0, 0], force: scale(subtract(to, point), stiffness) } }, "pull");
    };
    pull(hit.point);
    return { move: (moved) => pull(scene.inPlane(moved, hit.point)), end: () => state.set({ pull: null }) };
  });
}

// A file that is dropped goes to the sheet that is open, if that takes files; else it is a table of states.
function drops(page) {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", async (event) => {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (!file) return;
    const text = await file.text();
    if (page.chosen().take) return page.chosen().take(text, file.name);
    page.player.table(text, file.name);
    page.open("Motion");
  });
  addEventListener("keydown", (event) => {
    if (event.key !== " " || event.target.closest("input, button, select, textarea")) return;
    event.preventDefault();
    page.player.toggle();
  });
}

function unpacked(model) {
  const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer), motion = new Motion(model.motion.name);
  const [time, q, v] = ["time", "q", "v"].map((key) => numbers(model.motion[key]));
  time.forEach((t, k) => motion.push(t, q.slice(k * model.nq, (k + 1) * model.nq), v.slice(k * model.nv, (k + 1) * model.nv)));
  return motion;
}

// Where full pictures of a movement take long, they are drawn coarser from then on, and the last one again in full; after some movements
// full ones are tried again.
function pace(scene, now) {
  const { renderer } = scene, since = now - scene.drawn;
  if (scene.dirty) {
    if (since > 500) scene.interval *= 0.9;
    else if (!renderer.coarse) scene.interval = 0.7 * scene.interval + 0.3 * since;
    renderer.coarse = scene.interval > 30;
    scene.drawn = now;
  } else if (renderer.coarse && since > 200) {
    renderer.coarse = false;
    scene.dirty = true;
  }
}

function run(page) {
  if (page.scene) pulling(page);
  let last = performance.now(), box = "";
  const turnNumber = (now) => {
    page.player.advance(Math.max(0, (now - last) / 1000));
    last = now;
    page.settle();
    if (page.scene) {
      const { clientWidth, clientHeight } = page.scene.canvas, size = `${clientWidth} ${clientHeight}`;
      if (size !== box) (box = size), (page.scene.dirty = true);
      pace(page.scene, now);
      if (page.scene.dirty) page.scene.draw();
    }
    page.pictures = (page.pictures ?? 0) + 1;
    requestAnimationFrame(turnNumber);
  };
  if (page.scene) page.scene.draw();
  page.first = performance.now();
  requestAnimationFrame(turnNumber);
}
