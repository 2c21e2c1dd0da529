// The forecast follows the form; errors stand at their field.
import { put } from "./part.js";

const form = document.querySelector("form[data-forecast]");
let timer;
let asking;

function atFields(part) {
  const found = new Map([...part.querySelectorAll("[data-errors] [data-field]")].map((item) => [item.dataset.field, item.textContent]));
  for (const place of form.querySelectorAll("[data-error]")) {
    const message = found.get(place.dataset.error) ?? "";
    place.textContent = message;
    const field = document.querySelector(`[aria-describedby~="${CSS.escape(place.id)}"]`);
    if (message) field?.setAttribute("aria-invalid", "true");
    else field?.removeAttribute("aria-invalid");
  }
}

async function ask() {
  asking?.abort();
  asking = new AbortController();
  const part = form.querySelector("[data-forecast-part]");
  try {
    // A field named "dataset" hides form.dataset.
    const answer = await fetch(form.getAttribute("data-forecast"), {
      method: "POST", body: new URLSearchParams(new FormData(form)), credentials: "same-origin", signal: asking.signal,
    });
    if (!answer.ok) return;
    put(part, await answer.text());
    atFields(part);
  } catch (error) {
    if (error.name !== "AbortError") part.textContent = "The forecast could not be fetched. The audit can still be started.";
  }
}

function soon(delay) { clearTimeout(timer); timer = setTimeout(ask, delay); }

if (form) {
  form.querySelector("[data-noscript-only]").hidden = true;
  form.addEventListener("input", () => soon(350));
  form.addEventListener("change", () => soon(0));
  const other = form.elements.namedItem("other_seeds");
  form.addEventListener("change", (event) => { if (event.target.name === "preset" && other) other.value = ""; });
  if (form.querySelector("[aria-invalid=true]")) form.querySelector("[aria-invalid=true]").focus();
  else ask();
}
