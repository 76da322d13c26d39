// The sheet of the phase portrait: a coordinate against its velocity, the flow while the others are held, the motion that is played.

import { digits, h, section } from "./elements.js";
import { mapOf, placeOn } from "./maps.js";

export function phaseSheet(page, asking) {
  const { state, player } = page, told = h("p", { class: "note" }), chart = h("canvas", { class: "map", width: 320, height: 320, id: "phase" }), mine = { flow: null };
  const chooser = h("select", { "aria-label": "joint", onchange: () => compute(chooser.value) });
  const compute = async (joint = null) => {
    told.textContent = "computing the flow …";
    try {
      const speeds = state.v.map((_, k) => (player.motion?.v ?? []).reduce((most, v) => Math.max(most, Math.abs(v[k])), 0));
      mine.flow = await asking.ask("phase", { q: state.q, joint, fastest: 6, speeds });
      chooser.replaceChildren(...mine.flow.choices.map((name) => h("option", { value: name }, name)));
      chooser.value = mine.flow.name;
      const { name, unit, low, high } = mine.flow;
      told.textContent = `across: ${name}, ${digits(low[0], 2)} to ${digits(high[0], 2)} ${unit}; upward: its velocity, ±${digits(high[1], 1)} ${unit}/s`;
    } catch (error) {
      told.textContent = error.message;
    }
    update();
  };
  const visit = (event) => {
    if (!mine.flow || (event.type === "pointermove" && !event.buttons)) return;
    const [x, y] = placeOn(chart, mine.flow, event), q = state.q.slice(), v = state.v.slice();
    q[mine.flow.place[0]] = x;
    v[mine.flow.place[1]] = y;
    player.stop();
    state.set({ q, v }, "phase");
  };
  chart.addEventListener("pointerdown", visit);
  chart.addEventListener("pointermove", visit);
  const update = () => {
    const { flow } = mine;
    if (!flow) return;
    const line = player.motion ? [player.motion.q.map((q, k) => [q[flow.place[0]], player.motion.v[k][flow.place[1]]])] : [];
    mapOf(chart, flow, flow.acceleration.map(() => 0), [state.q[flow.place[0]], state.v[flow.place[1]]], line);
    strokes(chart, flow);
  };
  const element = h("div", {}, section("Phase portrait", "Position across, velocity upward. The strokes are the flow of this joint without joint forces while the others are held; the line is the motion that is played. Click to go there.", h("div", { class: "row" }, chooser, h("button", { type: "button", id: "flow", onclick: () => compute(chooser.value || null) }, "compute")), chart, told));
  page.phase = mine;
  return { name: "Phase", element, update, open: (on) => on && !mine.flow && compute() };
}

// Short strokes along the flow (v, a).
function strokes(canvas, { points, low, high, acceleration }) {
  const draw = canvas.getContext("2d"), size = canvas.width, style = getComputedStyle(document.documentElement);
  draw.strokeStyle = style.getPropertyValue("--teal");
  draw.globalAlpha = 0.75;
  draw.lineWidth = 1;
  for (let j = 1; j < points; j += 2) for (let i = 1; i < points; i += 2) {
    const a = acceleration[j * points + i];
    if (a === null) continue;
    const v = low[1] + ((high[1] - low[1]) * j) / (points - 1), dx = v / (high[0] - low[0]), dy = a / (high[1] - low[1]), length = Math.hypot(dx, dy) || 1;
    const x = (size * i) / (points - 1), y = size - (size * j) / (points - 1), s = (0.034 * size) / length;
    draw.beginPath();
    draw.moveTo(x, y);
    draw.lineTo(x + s * dx, y - s * dy);
    draw.stroke();
    draw.fillStyle = draw.strokeStyle;
    draw.fillRect(x - 1, y - 1, 2, 2);
  }
  draw.globalAlpha = 1;
}
