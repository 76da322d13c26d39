// What is shown, as a short Python program.

const list = (x) => `[${x.map((y) => (Array.isArray(y) ? list(y) : String(Object.is(y, -0) ? 0 : y))).join(", ")}]`;
const text = (x) => JSON.stringify(x);

export function program(state, lines, arrays = ["q"]) {
  const { model } = state.mechanism;
  const source = model.source ? model.source : `cj.load("robot.json")                 # saved from the page, under Model`;
  const values = { q: state.q, v: state.v, a: state.a };
  const given = arrays.map((name) => `${name} = np.array(${list(Array.from(values[name]))})`);
  return ["import numpy as np", "import coadjoint as cj", "", `robot = ${source}`, ...given, ...lines, ""].join("\n");
}

export const frameName = (state) => text(state.mechanism.model.frames[state.frame].name);
export const pythonList = list;
