"""A stick figure that moves: drawn line by line, as a GIF, a page that needs no network, or an MP4.

The view is orthographic and fixed, and the motion fills it: a plane mechanism is seen from across its plane, another one from the front
and above.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CoadjointError
from ..words import printable

SIZE = 480
"""The side of a frame in pixels."""

MARGIN = 0.08
AZIMUTH, ELEVATION = np.radians(-60.0), np.radians(22.0)
LINK, JOINT = (31, 78, 121), (192, 57, 43)


class Film:
    """The frames of a film: lines (frames, lines, 2, 3), of which the first `joints` end at joints, at these times."""

    def __init__(self, name: str, joints: int, lines: np.ndarray, time: np.ndarray, frames_per_second: float) -> None:
        self.name, self.joints, self.time, self.frames_per_second = printable(name), joints, time, frames_per_second
        self.points, self.scale = _projected(lines)

    def __len__(self) -> int:
        return len(self.time)

    def write(self, path: Path, extension: str, report: Callable[[float], None] | None = None) -> None:
        """Write the film as .gif, .html or .mp4."""
        if extension == ".html":
            path.write_text(self.page(), encoding="utf-8")
            if report is not None:
                report(1.0)
        elif extension == ".gif":
            first, *rest = [image.quantize(64) for image in self.images(report)]
            first.save(path, format="GIF", save_all=True, append_images=rest, duration=1000 / self.frames_per_second, loop=0)
        else:
            self._write_mp4(path, report)

    def _write_mp4(self, path: Path, report: Callable[[float], None] | None) -> None:
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIZE}x{SIZE}", "-r", str(self.frames_per_second), "-i", "-"]
        command = ["ffmpeg", "-loglevel", "error", "-y", *raw, "-pix_fmt", "yuv420p", "-f", "mp4", str(path)]
        data = b"".join(image.tobytes() for image in self.images(report))
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if done.returncode:
            raise CoadjointError(f"ffmpeg could not write the film: {done.stderr.decode(errors='replace')[-200:]}")

    def images(self, report: Callable[[float], None] | None = None) -> Iterator[Any]:
        """The frames as images of Pillow, drawn at twice their size and reduced."""
        from PIL import Image, ImageDraw

        k = 2 * SIZE
        for number in range(len(self)):
            image = Image.new("RGB", (k, k), "white")
            pen = ImageDraw.Draw(image)
            length = self.scale[0] * k
            pen.line([(40, k - 40), (40 + length, k - 40)], fill=(120, 120, 120), width=3)
            pen.text((40, k - 80), self.scale[1], fill=(90, 90, 90), font_size=26)
            pen.text((40, 28), self.title(number), fill=(40, 40, 40), font_size=30)
            lines = self.points[number] * k
            for a, b in lines:
                pen.line([tuple(a), tuple(b)], fill=LINK, width=10)
            for a, b in lines:
                for x, y in (a, b):
                    pen.ellipse([x - 5, y - 5, x + 5, y + 5], fill=LINK)
            for _, (x, y) in lines[: self.joints]:
                pen.ellipse([x - 11, y - 11, x + 11, y + 11], fill="white", outline=JOINT, width=5)
            if report is not None:
                report((number + 1) / len(self))
            yield image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)

    def title(self, number: int) -> str:
        """The text above a frame."""
        name = self.name if len(self.name) <= 30 else f"{self.name[:29]}…"
        return f"{name}   t = {self.time[number]:.2f} s"

    def page(self) -> str:
        """The film as a page that draws it: one file, no network."""
        data = {
            "points": np.round(self.points * 1000).astype(int).reshape(len(self), -1).tolist(),
            "time": np.round(self.time, 3).tolist(),
            "joints": self.joints,
            "rate": self.frames_per_second,
            "bar": [self.scale[0], self.scale[1]],
            "name": self.name,
        }
        text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
        before, between, after = re.split("TITLE|DATA", _PAGE)  # at once: a name may be one of the two words
        return f"{before}{escape(self.name)}{between}{text}{after}"

    def _repr_html_(self) -> str:
        # A frame of its own: names and styles of the page stay in it.
        return f'<iframe srcdoc="{escape(self.page())}" width="520" height="570" style="border:0"></iframe>'


def _projected(lines: np.ndarray) -> tuple[np.ndarray, tuple[float, str]]:
    """The lines on the frame (frames, lines, 2, 2), x to the right and y down, in parts of its side; and a length in it with its name."""
    flat = np.ptp(lines.reshape(-1, 3), axis=0)
    if flat.min() <= 1e-6 * max(flat.max(), 1e-12):
        across = int(np.argmin(flat))
        shown = [i for i in range(3) if i != across]
        view = np.eye(3)[shown]
    else:
        c, s, ce, se = np.cos(AZIMUTH), np.sin(AZIMUTH), np.cos(ELEVATION), np.sin(ELEVATION)
        view = np.array([[-s, c, 0.0], [-se * c, -se * s, ce]])
    points = lines @ view.T
    low, high = points.reshape(-1, 2).min(axis=0), points.reshape(-1, 2).max(axis=0)
    size = max(float((high - low).max()), 1e-6)
    unit = (1 - 2 * MARGIN) / size
    points = 0.5 + (points - (low + high) / 2) * unit
    points[..., 1] = 1 - points[..., 1]
    exponent = np.floor(np.log10(size / 4))
    length = max(x * 10**exponent for x in (1, 2, 5) if x * 10**exponent <= size / 4 * (1 + 1e-9))
    return points, (float(length * unit), f"{length:g} m")


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>TITLE</title>
<style>body{font:13px system-ui,sans-serif;margin:8px;color:#222;background:#fff;max-width:480px}canvas{width:100%;display:block}
p{display:flex;gap:8px;align-items:center;margin:4px 0}button{width:3em}input{flex:1;min-width:0}span{min-width:4.6em;text-align:right}
</style></head><body>
<canvas width="960" height="960"></canvas><p><button></button><input type="range" min="0" value="0"><span></span></p>
<script>
const film = DATA;
const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d"), k = 960 / 1000;
const button = document.querySelector("button"), slider = document.querySelector("input"), label = document.querySelector("span");
slider.max = film.time.length - 1;
let at = 0, playing = true, last = 0;
function draw() {
  const p = film.points[at], n = p.length / 4;
  pen.clearRect(0, 0, 960, 960);
  pen.lineCap = "round"; pen.lineWidth = 10; pen.strokeStyle = "#1f4e79"; pen.beginPath();
  for (let i = 0; i < n; i++) { pen.moveTo(p[4*i] * k, p[4*i+1] * k); pen.lineTo(p[4*i+2] * k, p[4*i+3] * k); }
  pen.stroke();
  pen.lineWidth = 5; pen.strokeStyle = "#c0392b"; pen.fillStyle = "#fff";
  for (let i = 0; i < film.joints; i++) {
    pen.beginPath(); pen.arc(p[4*i+2] * k, p[4*i+3] * k, 11, 0, 7); pen.fill(); pen.stroke();
  }
  pen.lineWidth = 3; pen.strokeStyle = "#777"; pen.beginPath(); pen.moveTo(40, 920); pen.lineTo(40 + film.bar[0] * 960, 920); pen.stroke();
  pen.fillStyle = "#555"; pen.font = "26px sans-serif"; pen.fillText(film.bar[1], 40, 905);
  pen.fillStyle = "#222"; pen.font = "30px sans-serif"; pen.fillText(film.name, 40, 50);
  label.textContent = "t = " + film.time[at].toFixed(2) + " s"; slider.value = at;
}
function step(now) {
  if (playing && now - last > 1000 / film.rate) { at = (at + 1) % film.time.length; last = now; draw(); }
  requestAnimationFrame(step);
}
function play(on) { playing = on; button.textContent = on ? "\\u275a\\u275a" : "\\u25b6"; }
button.onclick = () => play(!playing);
slider.oninput = () => { play(false); at = +slider.value; draw(); };
play(true); draw(); requestAnimationFrame(step);
</script></body></html>
"""
