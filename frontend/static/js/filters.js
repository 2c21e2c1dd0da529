// Filters of a list: a change is shown at once and lives in the URL.
import { refresh } from "./part.js";

const form = document.querySelector("form[data-auto]");
let timer;

function show() {
  const url = new URL(location.href);
  for (const [name, value] of new FormData(form)) value ? url.searchParams.set(name, value) : url.searchParams.delete(name);
  url.searchParams.delete("cursor");
  history.replaceState(null, "", url);
  for (const part of document.querySelectorAll("[data-part]")) refresh(part);
}

if (form) {
  form.querySelector("[data-submit]").hidden = true;
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(show, 250); });
}
