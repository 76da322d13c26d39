// Lines over time on a canvas, with a cursor.

import { digits, h } from "./elements.js";

export const INKS = ["#0e7c66", "#c2603a", "#4b6cb7", "#a8842c", "#8a4f9e", "#5b8c3e", "#b3446c", "#4f7c8a", "#7a6a58", "#3d9bb3"];

const swatch = (ink) => {
  const element = h("i", { class: "ink" });
  element.style.background = ink;
  return element;
};

const LEFT = 46, RIGHT = 6;

export class Chart {
  // names: of the lines, shown in their colours where these suffice to tell them apart.
  constructor(title, unit, tip, names = [], inks = INKS) {
    this.inks = inks;
    this.canvas = h("canvas", { class: "chart", height: 110 });
    this.value = h("span", { class: "value" });
    this.unit = h("span", { class: "unit" }, ` [${unit}] `);
    this.element = h("figure", { hidden: true }, h("figcaption", { "data-tip": tip }, title, this.unit, this.value), this.canvas, names.length > 1 && names.length <= inks.length ? h("div", { class: "lines" }, names.map((name, k) => h("span", {}, swatch(inks[k]), name))) : []);
  }

  // Let a pointer that is dragged over the graph set the player's time.
  scrub(player) {
    this.canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons || !player.motion) return;
      const box = this.canvas.getBoundingClientRect(), s = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT), [first] = player.motion.time;
      player.seek(first + s * (player.motion.end - first));
    });
  }

  // lines: arrays of values at the times; now: where the cursor stands.
  draw(time, lines, now) {
    this.element.hidden = !time.length;
    if (!time.length) return;
    const { canvas } = this, ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 300, height = 110;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const draw = canvas.getContext("2d"), style = getComputedStyle(canvas);
    draw.scale(ratio, ratio);
    draw.clearRect(0, 0, width, height);
    let low = Infinity, high = -Infinity;
    for (const line of lines) for (const y of line) if (Number.isFinite(y)) (low = Math.min(low, y)), (high = Math.max(high, y));
    if (!(high > low)) (low -= 0.5), (high += 0.5);
    const t0 = time[0], t1 = Math.max(time[time.length - 1], t0 + 1e-9), left = LEFT, right = width - RIGHT, top = 6, bottom = height - 16;
    const x = (t) => left + ((right - left) * (t - t0)) / (t1 - t0), y = (v) => bottom - ((bottom - top) * (v - low)) / (high - low);
    draw.font = "10px ui-monospace, monospace";
    draw.fillStyle = draw.strokeStyle = style.color;
    draw.globalAlpha = 0.55;
    draw.textAlign = "right";
    draw.fillText(digits(high, 3), left - 5, top + 7);
    draw.fillText(digits(low, 3), left - 5, bottom);
    draw.fillText(`${digits(t1, 2)} s`, right, height - 3);
    draw.textAlign = "left";
    draw.fillText(digits(t0, 2), left, height - 3);
    draw.globalAlpha = 0.2;
    draw.beginPath();
    for (const v of [low, high, low < 0 && high > 0 ? 0 : low]) draw.moveTo(left, y(v)), draw.lineTo(right, y(v));
    draw.stroke();
    draw.globalAlpha = 1;
    draw.lineWidth = 1.4;
    lines.forEach((line, k) => {
      draw.strokeStyle = this.inks[k % this.inks.length];
      draw.beginPath();
      const every = Math.max(1, Math.floor(time.length / 900));
      for (let i = 0; i < time.length; i += every) draw.lineTo(x(time[i]), y(line[i]));
      draw.stroke();
    });
    draw.strokeStyle = style.color;
    draw.lineWidth = 1;
    draw.globalAlpha = 0.7;
    draw.beginPath();
    draw.moveTo(x(now), top), draw.lineTo(x(now), bottom);
    draw.stroke();
  }
}
