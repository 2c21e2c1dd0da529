// Replaces one part of the page by what the page layer says now. Focus, open details and scrolling survive.

const pending = new Map();

export function address(part) {
  const url = new URL(part.dataset.part, location.origin);
  if ("withSelection" in part.dataset || part.dataset.part.startsWith("/parts/")) url.search = location.search;
  return url;
}

export async function refresh(part) {
  if (pending.get(part)) { pending.set(part, "again"); return; }
  pending.set(part, "now");
  try {
    const answer = await fetch(address(part), { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (answer.status === 401) { location.reload(); return; }
    if (answer.ok && part.isConnected) put(part, await answer.text());
  } catch { /* the connection line says so; the next event or reconnection asks again */ }
  finally {
    const again = pending.get(part) === "again";
    pending.delete(part);
    if (again && part.isConnected) refresh(part);
  }
}

export function put(part, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  if (part.dataset.shown === html) return;
  part.dataset.shown = html.length < 20000 ? html : "";
  if (part.querySelector("form[data-edited]")) { part.dataset.shown = ""; return; } // what somebody filled in is not thrown away
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  if (focused && isBeingEdited(focused)) { part.dataset.shown = ""; part.dataset.stale = "yes"; return; }
  const memory = remember(part, focused);
  keepCanvases(part, fresh.content);
  part.replaceChildren(fresh.content);
  recall(part, memory);
  part.dispatchEvent(new CustomEvent("part:replaced", { bubbles: true }));
}

// A field that somebody types in is not taken away; the part is refreshed when they leave it.
function isBeingEdited(element) {
  return element.matches("input:not([type=checkbox]):not([type=radio]), textarea");
}

document.addEventListener("focusout", (event) => {
  const part = event.target.closest?.("[data-stale]");
  if (part && !part.contains(event.relatedTarget)) { delete part.dataset.stale; refresh(part); }
});

function remember(part, focused) {
  return {
    id: focused?.id || null,
    row: focused?.closest?.("tr[data-key]")?.dataset.key || null,
    open: [...part.querySelectorAll("details[data-keep]")].filter((d) => d.open).map((d) => d.dataset.keep),
    scrolled: [...part.querySelectorAll(".scroll[id]")].map((r) => [r.id, r.scrollLeft, r.scrollTop]),
    sorted: [...part.querySelectorAll("table[data-sortable][id]")]
      .map((t) => [t.id, t.dataset.sortedBy, t.dataset.sortedDown]).filter(([, by]) => by !== undefined),
  };
}

function recall(part, memory) {
  for (const details of part.querySelectorAll("details[data-keep]")) if (memory.open.includes(details.dataset.keep)) details.open = true;
  for (const [id, left, top] of memory.scrolled) document.getElementById(id)?.scrollTo(left, top);
  for (const [id, by, down] of memory.sorted) {
    part.dispatchEvent(new CustomEvent("table:sort", { bubbles: true, detail: { id, by: Number(by), down: down === "yes" } }));
  }
  const target = memory.id ? document.getElementById(memory.id)
    : memory.row ? [...part.querySelectorAll("tr[data-key]")].find((row) => row.dataset.key === memory.row) : null;
  target?.focus({ preventScroll: true });
}

// A drawn chart is moved into the new part, so that it is redrawn in place and never blinks.
function keepCanvases(part, fresh) {
  for (const chart of fresh.querySelectorAll("[data-chart][id]")) {
    const canvas = part.querySelector(`#${CSS.escape(chart.id)} [data-canvas].drawn`);
    if (canvas) {
      const blank = chart.querySelector("[data-canvas]");
      canvas.setAttribute("aria-label", blank.getAttribute("aria-label"));
      blank.replaceWith(canvas);
    }
  }
}
