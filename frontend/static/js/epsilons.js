// Epsilons as ticks on a logarithmic axis that can be dragged, or moved with the arrow keys. The text field stays the truth.

const LOW = Math.log10(0.05), HIGH = Math.log10(40), LEFT = 16, MIDDLE = 46;
let width = 640;
const TICKS = [0.1, 0.3, 1, 3, 10, 30];
const field = document.querySelector("input[name=epsilons]");
const box = document.querySelector("[data-epsilons]");

const place = (epsilon) => LEFT + ((Math.log10(epsilon) - LOW) / (HIGH - LOW)) * (width - 2 * LEFT);
const epsilonAt = (x) => 10 ** (LOW + ((Math.min(Math.max(x, LEFT), width - LEFT) - LEFT) / (width - 2 * LEFT)) * (HIGH - LOW));
const tidy = (epsilon) => Number(epsilon.toPrecision(2));
const values = () => field.value.split(/[\s,;]+/).filter(Boolean).map(Number);

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function write(numbers, focus) {
  field.value = numbers.join(" ");
  draw(focus);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function move(index, epsilon) {
  const numbers = values();
  numbers[index] = tidy(epsilon);
  write(numbers, index);
}

function handle(svg, epsilon, index) {
  const inside = epsilon >= 0.05 && epsilon <= 40;
  if (!inside) return;
  const dot = element("circle", { class: "handle", cx: place(epsilon), cy: MIDDLE, r: 8, tabindex: 0, role: "slider",
    "aria-label": `Epsilon ${index + 1}`, "aria-valuemin": 0.05, "aria-valuemax": 40, "aria-valuenow": epsilon });
  dot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1.1, ArrowUp: 1.1, ArrowLeft: 1 / 1.1, ArrowDown: 1 / 1.1, PageUp: 2, PageDown: 0.5 }[event.key];
    if (step) { event.preventDefault(); move(index, epsilonAt(place(epsilon * step))); }
    if (event.key === "Delete" && values().length > 1) write(values().filter((_, at) => at !== index), 0);
  });
  dot.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const at = (e) => ((e.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width) * width;
    const drag = (e) => move(index, epsilonAt(at(e)));
    addEventListener("pointermove", drag);
    addEventListener("pointerup", () => removeEventListener("pointermove", drag), { once: true });
  });
  svg.append(element("text", { class: "value", x: place(epsilon), y: MIDDLE - 16 }, epsilon), dot);
}

function draw(focus) {
  width = Math.max(280, Math.min(640, box.clientWidth));
  const svg = element("svg", { class: "axis", viewBox: `0 0 ${width} 96`, role: "group", "aria-label": "Epsilons on a logarithmic axis" });
  svg.append(element("line", { class: "rule", x1: LEFT, x2: width - LEFT, y1: MIDDLE, y2: MIDDLE }));
  for (const tick of TICKS) {
    svg.append(element("line", { class: "rule", x1: place(tick), x2: place(tick), y1: MIDDLE, y2: MIDDLE + 12 }));
    svg.append(element("text", { class: "tick", x: place(tick), y: MIDDLE + 27 }, tick));
  }
  svg.append(element("text", { x: LEFT, y: 94 }, "← stronger privacy"), element("text", { class: "end", x: width - LEFT, y: 94 }, "weaker privacy →"));
  values().forEach((epsilon, index) => { if (epsilon > 0) handle(svg, epsilon, index); });
  box.replaceChildren(svg);
  if (focus !== undefined) svg.querySelectorAll(".handle")[focus]?.focus();
}

if (field && box) {
  box.hidden = false;
  field.addEventListener("input", (event) => { if (event.isTrusted) draw(); });
  addEventListener("resize", () => draw());
  draw();
}
