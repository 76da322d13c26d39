// The sheet of motion: let fall, play, scrub, drop a table; lines over time.

import { Chart } from "./chart.js";
import { digits, h, section, toggle } from "./elements.js";
import { download } from "./sheet_model.js";

export function motionSheet(state, player) {
  const { model } = state.mechanism, units = [...new Set(model.turns.map((x) => (x ? "rad" : "m")))];
  const charts = { q: new Chart("q", units.join(", "), "The coordinates over time.", model.qNames), v: new Chart("v", units.map((x) => `${x}/s`).join(", "), "The velocities over time.", model.vNames), energy: new Chart("T, U, T + U", "J", "Kinetic, potential and total energy: in a fall without damping the total is constant.", ["T", "U", "T + U"]) };
  const told = h("p", { class: "note" }), file = h("input", { type: "file", accept: ".csv,.tsv,.txt", class: "hidden", id: "file" });
  file.addEventListener("change", async () => file.files[0] && player.table(await file.files[0].text(), file.files[0].name));
  const zone = h("label", { class: "drop", for: "file", "data-tip": "Columns time, q.joint (or q1, q2, …) and v.joint, as `coadjoint simulate --out` and Trajectory.save write them." }, "drop a table of states here (CSV), or choose one", file);
  const let_go = h("button", { type: "button", id: "fall", class: "primary", "data-tip": "Simulated in this page by Runge and Kutta's method of fourth order, steps of 1 ms, on the robot's own forward dynamics. Grab a link and pull while it falls.", onclick: () => player.fall() }, "let fall");
  const buttons = h("div", { class: "row" }, player.canFall ? let_go : [], toggle("damping", false, "Let the joints' viscous damping act; dry friction is left out here.", (on) => (player.damped = on)), h("span", { class: "spring" }), h("button", { type: "button", "data-tip": "The states as a table, which `coadjoint` reads.", onclick: () => player.motion && download("motion.csv", table(model, player.motion)) }, "save CSV"));
  const graphs = section("Over time", "Drag on a graph to scrub.", Object.values(charts).map((x) => x.element)), element = h("div", {}, buttons, zone, told, graphs);
  for (const chart of Object.values(charts)) chart.scrub(player);
  let energies = { of: null, rows: [] };
  const update = () => {
    const motion = player.motion;
    told.textContent = player.error || (motion ? `${motion.name}: ${motion.time.length} states, ${digits(motion.end - motion.time[0], 2)} s` : "");
    told.classList.toggle("wrong", Boolean(player.error));
    graphs.hidden = !motion;
    if (!motion) return;
    if (energies.of !== motion) energies = { of: motion, rows: [] };
    for (let k = energies.rows.length; k < motion.time.length; k++) {
      const T = state.mechanism.programs.kinetic?.(motion.q[k], motion.v[k]) ?? NaN, U = state.mechanism.programs.potential(motion.q[k]);
      energies.rows.push([T, U, T + U]);
    }
    const columns = (rows) => rows[0].map((_, k) => rows.map((row) => row[k]));
    charts.q.draw(motion.time, columns(motion.q), player.now);
    charts.v.draw(motion.time, columns(motion.v), player.now);
    charts.energy.draw(motion.time, columns(energies.rows), player.now);
    const total = energies.rows.map((x) => x[2]), drift = Math.max(...total) - Math.min(...total);
    charts.energy.value.textContent = `T + U varies by ${digits(drift, 3)} J`;
  };
  return { name: "Motion", element, update };
}

const table = (model, motion) => [["time", ...model.qNames.map((x) => `q.${x}`), ...model.vNames.map((x) => `v.${x}`)].map(quoted).join(","), ...motion.time.map((t, k) => [t, ...motion.q[k], ...motion.v[k]].join(",")), ""].join("\n");
const quoted = (x) => (/[",\n]/.test(x) ? `"${x.replace(/"/g, '""')}"` : x);

// The bar under the scene: play, time, scrub.
export function transport(holder, player) {
  const play = h("button", { type: "button", id: "play", "aria-label": "play or pause", "data-tip": "Play or pause (space)." }, "▶");
  const slider = h("input", { type: "range", min: 0, max: 1, step: "any", "aria-label": "time" }), clock = h("output", { class: "clock" });
  play.addEventListener("click", () => player.toggle());
  slider.addEventListener("input", () => player.motion && player.seek(Number(slider.value)));
  const speeds = h("select", { "aria-label": "speed", "data-tip": "How fast, of real time." }, [0.1, 0.25, 0.5, 1, 2].map((x) => h("option", { value: x, selected: x === 1 }, `${x}×`)));
  speeds.addEventListener("change", () => (player.speed = Number(speeds.value)));
  holder.append(play, slider, clock, speeds);
  return () => {
    holder.hidden = !player.motion;
    if (!player.motion) return;
    play.textContent = player.playing ? "❚❚" : "▶";
    slider.min = player.motion.time[0];
    slider.max = Math.max(player.motion.end, player.motion.time[0] + 1e-6);
    slider.value = player.now;
    slider.style.setProperty("--at", `${(100 * (player.now - slider.min)) / (slider.max - slider.min)}%`);
    slider.style.setProperty("--zero", "0%");
    clock.textContent = `${player.now.toFixed(2)} s`;
  };
}
