// The sheet of identification: a log of the real robot, its joint forces beside those of the description and of the model that fits.

import { Chart, INKS } from "./chart.js";
import { digits, h, section } from "./elements.js";
import { Motion } from "./motion.js";
import { download } from "./sheet_model.js";

const MOST = 24 * 2 ** 20;

export function measuredSheet(page, asking) {
  const { player, model } = page, told = h("p", { class: "note", id: "identified" }), mine = { found: null, motion: null, joint: 0 };
  const say = (error, text = "") => {
    told.textContent = error ? error.message : text;
    told.classList.toggle("wrong", Boolean(error));
  };
  const forces = new Chart("force", "N m", "The force of this joint over the log.", ["measured", "of the fitted model", "of the description"]), left = new Chart("residual", "N m", "Measured minus computed.", ["of the fitted model", "of the description"], INKS.slice(1));
  const chooser = h("select", { "aria-label": "joint", onchange: () => ((mine.joint = Number(chooser.value)), update()) }, model.vNames.map((name, k) => h("option", { value: k }, name)));
  const rows = h("tbody"), advice = h("ul", { class: "advice" }), results = h("div", { hidden: true });
  const take = async (text, name) => {
    if (text.length > MOST) return say(new Error(`${name} has ${digits(text.length / 2 ** 20, 1)} MB; the page sends at most 24. "coadjoint identify" reads larger ones.`));
    say(null, `fitting ${name} …`);
    try {
      const found = (mine.found = await asking.ask("identify", { table: text })), motion = (mine.motion = new Motion(name));
      found.time.forEach((t, k) => motion.push(t, found.q[k], found.v[k]));
      player.take(motion);
      rows.replaceChildren(...found.names.map((joint, k) => h("tr", { onclick: () => ((mine.joint = k), (chooser.value = k), update()) }, h("th", {}, joint), ...["measured", "before", "after"].map((key) => h("td", { class: "figure" }, digits(found.rms[key][k], 3))), h("td", {}, found.units[k]))));
      advice.replaceChildren(...found.advice.map((line) => h("li", {}, line)));
      results.hidden = false;
      say(null, `${name}: relative error ${digits(100 * found.relative, 2)} %`);
    } catch (error) {
      say(error);
    }
    update();
  };
  const file = h("input", { type: "file", accept: ".csv,.tsv,.txt", class: "hidden", id: "log" });
  file.addEventListener("change", async () => file.files[0] && take(await file.files[0].text(), file.files[0].name));
  const zone = h("label", { class: "drop", for: "log", "data-tip": "Columns time, q1 … and tau1 … (also names such as position_0, effort_0, elbow_velocity), perhaps dq1 … and ddq1 …." }, "drop a log of the robot here (CSV: time, positions and joint forces), or choose one", file);
  const header = h("thead", {}, h("tr", {}, h("th", {}, "joint"), h("th", { "data-tip": "Root mean square of the measured force." }, "measured"), h("th", { "data-tip": "What the description leaves, as it is." }, "left before"), h("th", { "data-tip": "What the fitted model leaves." }, "left after"), h("th", {}, "")));
  results.append(section("Residuals", "Root mean squares over the log.", h("div", { class: "scroll" }, h("table", { class: "numbers" }, header, rows))), section("Over time", "Drag on a graph to scrub: the robot shows the recorded motion.", chooser, forces.element, left.element), section("What to record next", "", advice), h("button", { type: "button", id: "save-fit", "data-tip": "The identified robot as JSON: cj.load reads it.", onclick: () => download("identified.json", mine.found.robot) }, "save identified.json"));
  const element = h("div", {}, section("Identification", "Inertias of possible bodies, friction, rotors and offsets that fit the log (coadjoint.identify).", zone, told), results);
  for (const chart of [forces, left]) chart.scrub(player);
  const update = () => {
    if (!mine.found) return;
    const { time, measured, before, after } = mine.found, of = (x) => x.map((row) => row[mine.joint]), now = player.motion === mine.motion ? player.now : time[0];
    for (const chart of [forces, left]) chart.unit.textContent = ` [${mine.found.units[mine.joint]}] `;
    forces.draw(time, [of(measured), of(after), of(before)], now);
    left.draw(time, [of(measured).map((x, k) => x - after[k][mine.joint]), of(measured).map((x, k) => x - before[k][mine.joint])], now);
  };
  page.measured = Object.assign(mine, { take });
  return { name: "Identify", element, update, take };
}
