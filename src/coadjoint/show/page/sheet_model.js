// The sheet of the model: doubts about it, its tree with masses and limits, and the robot itself to save.

import { digits, h, named, section, vector } from "./elements.js";

export function modelSheet(state, saved) {
  const { model } = state.mechanism;
  const doubts = model.warnings.length ? section("Doubts", "What is suspicious in the description of this robot.", h("ul", { class: "doubts" }, model.warnings.map((text) => h("li", {}, text)))) : h("p", { class: "fine" }, "No doubts about this description: every inertia is that of a possible body, every joint moves mass.");
  const depth = (i) => (model.links[i].parent < 0 ? 1 : depth(model.links[i].parent) + 1);
  const order = [];
  const children = (parent) => model.links.forEach((link, i) => link.parent === parent && (order.push(i), children(i)));
  children(-1);
  const deepest = Math.max(0, ...order.map(depth)), rows = new Map(order.map((i) => [i, line(i)]));
  function line(i) {
    const { joint, ...link } = model.links[i], name = h("th", {}, h("div", { class: "cut" }, h("span", { class: "branch" }, "└ "), named(link.name)));
    name.style.paddingLeft = `${Math.min(depth(i), 12) * (deepest > 8 ? 3 : 9)}px`;
    const limits = joint.mimic ? `= ${digits(joint.mimic.ratio)} · ${joint.mimic.joint}` : joint.lower.map((low, k) => (low === null && joint.upper[k] === null ? "" : `${low === null ? "" : digits(low, 2)} … ${joint.upper[k] === null ? "" : digits(joint.upper[k], 2)}`)).filter(Boolean).join("; ");
    const tip = `${link.name}, by the ${joint.kind} joint ${joint.name}: centre of mass ${vector(link.com)} m; principal moments ${vector(link.moments)} kg m²${link.doubts.length ? `; ${link.doubts.join("; ")}` : ""}`;
    return h("tr", { tabindex: 0, class: link.possible ? "" : "wrong", "data-tip": tip, onclick: () => state.set({ link: state.link === i ? -2 : i }), onkeydown: (event) => event.key === "Enter" && state.set({ link: i }) }, name, h("td", { class: "figure" }, digits(link.mass, 3)), h("td", { class: "figure" }, limits), h("td", {}, h("div", { class: "cut" }, named(joint.name), h("span", { class: "kind" }, joint.kind))));
  }
  const head = h("thead", {}, h("tr", {}, h("th", {}, model.base), h("th", {}, "mass [kg]"), h("th", { "data-tip": "limits of q, in rad or m" }, `limits${one(model.turns)}`), h("th", {}, "joint")));
  const left = model.leftOut.length ? h("p", { class: "note" }, `Left out of this page, for its size: ${model.leftOut.join(", ")}. Python has them all.`) : [];
  const save = saved ? h("button", { type: "button", id: "save", "data-tip": "The robot as JSON without loss: cj.load reads it.", onclick: () => download("robot.json", saved) }, "save robot.json") : [];
  const element = h("div", {}, doubts, section("Tree", "Each link under the link that carries it; point at one for its inertia, click to mark it in the scene.", h("div", { class: "scroll" }, h("table", { class: "numbers tree" }, head, h("tbody", {}, order.map((i) => rows.get(i)))))), h("dl", { class: "readings" }, [["links", model.links.length], ["freedoms", model.freedoms], ...(model.constraints.length ? [["joint coordinates", model.nv]] : []), ["mass", `${digits(model.mass)} kg`], ["gravity", `${vector(model.gravity)} m/s²`], ...model.springs.map((x) => [x.name, x.joint < 0 ? `spring, ${digits(x.stiffness)} N/m, rest ${digits(x.rest)} m` : `spring about ${model.links[x.joint].joint.name}, ${digits(x.stiffness)}, rest ${digits(x.rest)}`]), ["made by", `coadjoint ${model.version}`]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))), left, save);
  const update = () => rows.forEach((row, i) => row.classList.toggle("chosen", i === state.link));
  return { name: "Model", element, update };
}

// The unit of all coordinates, where it is one.
const one = (turns) => (turns.length && turns.every(Boolean) ? " [rad]" : turns.length && !turns.some(Boolean) ? " [m]" : "");

export function download(name, text) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
