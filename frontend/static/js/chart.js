// Draws each chart from the figure that the page layer gives, when it scrolls into view, and again when it changes.
// Marks cannot be reached by keyboard, so rows of the table twin are linked to marks, both ways.

const config = { displayModeBar: false, responsive: true, displaylogo: false, scrollZoom: false };
const dark = matchMedia("(prefers-color-scheme: dark)");
const asked = new WeakMap();

function parts(chart) {
  return { canvas: chart.querySelector("[data-canvas]"), table: chart.querySelector("table") };
}

function address(chart) {
  const url = new URL(chart.dataset.source, location.origin);
  url.searchParams.set("tone", dark.matches && !matchMedia("print").matches ? "dark" : "light");
  if (chart.clientWidth < 640) url.searchParams.set("narrow", "yes");
  return url;
}

async function draw(chart) {
  if (typeof Plotly === "undefined") return;
  const url = address(chart);
  const { canvas } = parts(chart);
  asked.set(chart, url.href);
  try {
    const answer = await fetch(url, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const figure = await answer.json();
    if (asked.get(chart) !== url.href) return; // a newer wish overtook this one
    if (!canvas.classList.contains("drawn")) { canvas.replaceChildren(); canvas.classList.add("drawn"); }
    canvas.style.setProperty("min-height", `${figure.layout.height}px`);
    await Plotly.react(canvas, figure.data, figure.layout, config);
    link(chart);
    for (const button of chart.querySelectorAll("[data-save]")) button.hidden = false;
    chart.dataset.drawn = "yes";
  } catch {
    if (!canvas.classList.contains("drawn")) canvas.querySelector(".waiting").textContent = "The chart could not be fetched. The table below holds the same numbers; reload to try again.";
  }
}

function row(chart, key) {
  return [...chart.querySelectorAll("tr[data-key]")].find((found) => found.dataset.key === key);
}

function mark(canvas, key) {
  for (const [curveNumber, trace] of (canvas.data ?? []).entries()) {
    const pointNumber = (trace.customdata ?? []).findIndex((entry) => entry[0] === key);
    if (pointNumber >= 0) return { curveNumber, pointNumber };
  }
  return null;
}

function light(chart, key) {
  for (const found of chart.querySelectorAll("tr.linked")) found.classList.remove("linked");
  if (key) row(chart, key)?.classList.add("linked");
}

function point(chart, key) {
  const { canvas } = parts(chart);
  const found = key && mark(canvas, key);
  if (!canvas._fullLayout) return;
  const plot = found && canvas.data[found.curveNumber].xaxis === "x2" ? "x2y" : "xy";
  if (found) Plotly.Fx.hover(canvas, [found], plot);
  else Plotly.Fx.unhover(canvas);
}

function link(chart) {
  const { canvas } = parts(chart);
  if (canvas.dataset.linked) return;
  canvas.dataset.linked = "yes";
  canvas.on("plotly_hover", (event) => light(canvas.closest("[data-chart]"), event.points[0]?.customdata?.[0]));
  canvas.on("plotly_unhover", () => light(canvas.closest("[data-chart]"), null));
  canvas.on("plotly_click", (event) => {
    const group = event.points[0]?.customdata?.[0]?.split("|").slice(2).join("|");
    if (group) canvas.dispatchEvent(new CustomEvent("chart:group", { bubbles: true, detail: group }));
  });
}

for (const [name, from] of [["pointerover", "over"], ["focusin", "in"]]) {
  document.addEventListener(name, (event) => {
    const found = event.target.closest?.("[data-chart] tr[data-key]");
    if (found) point(found.closest("[data-chart]"), found.dataset.key);
    else if (from === "over" && !event.target.closest?.("[data-canvas]")) {
      for (const chart of document.querySelectorAll("[data-chart][data-pointing]")) point(chart, chart.querySelector("tr[data-key]:focus")?.dataset.key);
    }
    for (const chart of document.querySelectorAll("[data-chart]")) {
      if (found && chart.contains(found)) chart.dataset.pointing = "yes";
      else delete chart.dataset.pointing;
    }
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-save]");
  if (button) save(button.closest("[data-chart]"), button.dataset.save);
  const permalink = event.target.closest?.("[data-permalink]");
  if (permalink) {
    const url = new URL(location.href);
    url.hash = permalink.closest("[data-chart]").id;
    history.replaceState(null, "", url);
  }
});

function save(chart, format) {
  const { canvas } = parts(chart);
  const filename = `${document.querySelector("h1").textContent.trim()} ${chart.id} audit-only`.replace(/[^\p{L}\p{N}]+/gu, "-");
  Plotly.downloadImage(canvas, { format, filename, width: 1000, height: canvas._fullLayout.height, scale: format === "png" ? 2 : 1 });
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) { seen.unobserve(target); draw(target); }
}, { rootMargin: "300px" });

function watch(root) {
  for (const chart of root.querySelectorAll("[data-chart]")) {
    if (chart.querySelector("[data-canvas].drawn")) draw(chart);
    else seen.observe(chart);
  }
}

let narrow = innerWidth < 700;
addEventListener("resize", () => {
  if (narrow === innerWidth < 700) return;
  narrow = innerWidth < 700;
  watch(document);
});
dark.addEventListener("change", () => watch(document));
document.addEventListener("part:replaced", (event) => watch(event.target));
addEventListener("DOMContentLoaded", () => watch(document));
if (document.readyState !== "loading") watch(document);
