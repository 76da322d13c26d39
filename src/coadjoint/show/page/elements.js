// Elements of the page. Text from the robot only ever becomes text.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).map((x) => (x instanceof Node ? x : document.createTextNode(String(x)))));
  return element;
}

// A name that is cut in its middle where there is no room: names of one robot often differ in their ends only.
export function named(text) {
  const tail = text.length > 11 ? 8 : 0;
  return h("span", { class: "named" }, h("span", {}, text.slice(0, text.length - tail)), tail ? h("span", {}, text.slice(-tail)) : []);
}

// A number of few digits with a true minus sign, as wide as its neighbours.
export function digits(x, places = 4) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "—" : x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const text = size === 0 ? "0" : size >= 1e5 || size < 10 ** -places ? x.toExponential(2) : x.toFixed(Math.max(0, Math.min(places, places - Math.floor(Math.log10(Math.max(size, 1))))));
  return text.replace(/-/g, "−");
}

// A number that fits into a narrow cell.
export const brief = (x) => (x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(0).replace(/-/g, "−") : digits(x, 3));

// Numbers of one kind side by side, with as many places each; what is rounding beside the largest of them is zero.
export function vector(x, places = 3) {
  const most = Math.max(...x.map(Math.abs));
  if (!(most < 1e5) || (most > 0 && most < 10 ** -places)) return x.map((y) => digits(y, places)).join("  ");
  return x.map((y) => y.toFixed(places).replace(/^-(0\.0*)$/, "$1").replace("-", "−")).join("  ");
}

// x, or zero if it is rounding beside a number of that size.
export const beside = (x, size) => (Math.abs(x) < 1e-13 * size ? 0 : x);

// A short text that says what a thing is, when it is pointed at.
export function tips() {
  const tip = document.getElementById("tip");
  const show = (event) => {
    const owner = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.hidden = !owner;
    if (!owner) return;
    tip.textContent = owner.dataset.tip;
    const box = owner.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const below = box.bottom + 8 + own.height < innerHeight;
    tip.style.left = `${Math.max(8, Math.min(innerWidth - own.width - 8, box.left))}px`;
    tip.style.top = `${below ? box.bottom + 8 : Math.max(8, box.top - own.height - 8)}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", () => (tip.hidden = true));
}

// A button that copies text; where the browser does not permit it, the text is shown to be copied by hand.
export function copyButton(make, label = "copy as Python") {
  const button = h("button", { class: "copy", type: "button", "data-tip": "Copy a short Python program that computes what is shown here." }, label);
  button.addEventListener("click", async () => {
    const text = make();
    button.dataset.copied = text;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      const area = h("textarea", { class: "code", readonly: true, rows: 8 });
      area.value = text;
      button.replaceWith(area);
      area.select();
      return;
    }
    setTimeout(() => (button.textContent = label), 1400);
  });
  return button;
}

export function segmented(choices, chosen, pick) {
  const buttons = choices.map(([value, label, tip]) => h("button", { type: "button", "aria-pressed": String(value === chosen), "data-tip": tip, onclick: () => choose(value) }, label));
  const choose = (value) => {
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(choices[k][0] === value)));
    pick(value);
  };
  const element = h("div", { class: "segmented", role: "group" }, buttons);
  element.choose = choose;
  return element;
}

export function toggle(label, on, tip, change) {
  const button = h("button", { type: "button", class: "toggle", "aria-pressed": String(on), "data-tip": tip }, label);
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    change(now);
  });
  return button;
}

// A unit after a title.
export const unit = (text) => h("span", { class: "unit" }, ` [${text}]`);

export const section = (title, tip, ...children) => h("section", { class: "block" }, h("h3", { "data-tip": tip }, title), children);
