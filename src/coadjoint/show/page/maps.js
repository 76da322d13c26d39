// Maps over two numbers on a canvas: colours for values, lines, a point.

import { digits } from "./elements.js";
import { INKS } from "./chart.js";

const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

// Draw values (rows of y, columns of x); returns what the colours mean.
export function mapOf(canvas, { points, low, high }, values, here, lines) {
  const draw = canvas.getContext("2d"), size = canvas.width, sorted = values.filter((x) => x !== null).map(Math.abs).sort((a, b) => a - b);
  const most = sorted[Math.floor(0.98 * (sorted.length - 1))] || 1, image = draw.createImageData(points, points);
  const style = getComputedStyle(document.documentElement), paint = (name) => [1, 3, 5].map((k) => parseInt(style.getPropertyValue(name).trim().slice(k, k + 2), 16));
  const [paper, teal, amber] = ["--sheet", "--teal", "--accent"].map(paint);
  values.forEach((x, k) => {
    const row = points - 1 - Math.floor(k / points), at = 4 * (row * points + (k % points)), share = x === null ? 0 : Math.sqrt(clamp(Math.abs(x) / most, 0, 1)), ink = x >= 0 ? teal : amber;
    for (let j = 0; j < 3; j++) image.data[at + j] = paper[j] + (ink[j] - paper[j]) * share;
    image.data[at + 3] = 255;
  });
  const small = new OffscreenCanvas(points, points);
  small.getContext("2d").putImageData(image, 0, 0);
  draw.imageSmoothingEnabled = true;
  draw.drawImage(small, 0, 0, size, size);
  const x = (v) => (size * (v - low[0])) / (high[0] - low[0]), y = (v) => size - (size * (v - low[1])) / (high[1] - low[1]);
  lines.forEach((line, k) => {
    draw.strokeStyle = k ? style.getPropertyValue("--ink") : INKS[1];
    draw.lineWidth = 2;
    draw.beginPath();
    line.forEach(([a, b]) => draw.lineTo(x(a), y(b)));
    draw.stroke();
  });
  draw.fillStyle = style.getPropertyValue("--ink");
  draw.beginPath();
  draw.arc(x(here[0]), y(here[1]), 4.5, 0, 7);
  draw.fill();
  return `colours up to ±${digits(most, 3)}`;
}

// The two numbers under the pointer.
export function placeOn(canvas, { low, high }, event) {
  const box = canvas.getBoundingClientRect(), u = clamp((event.clientX - box.left) / box.width, 0, 1), v = clamp(1 - (event.clientY - box.top) / box.height, 0, 1);
  return [low[0] + u * (high[0] - low[0]), low[1] + v * (high[1] - low[1])];
}
