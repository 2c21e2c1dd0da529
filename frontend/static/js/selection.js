// What is chosen lives in the URL and is shared by all charts and tables of the page.
import { refresh } from "./part.js";

function show() {
  for (const part of document.querySelectorAll("[data-part][data-with-selection]")) refresh(part);
}

function choose(form, push) {
  const url = new URL(location.href);
  for (const [name, value] of new FormData(form)) value ? url.searchParams.set(name, value) : url.searchParams.delete(name);
  url.searchParams.delete("page");
  if (url.href === location.href) return;
  history[push ? "pushState" : "replaceState"](null, "", url);
  show();
}

function ready() {
  for (const button of document.querySelectorAll("[data-selection] [data-submit]")) button.hidden = true;
}

document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-selection]");
  if (form) choose(form, true);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches?.("form[data-selection]")) return;
  event.preventDefault();
  choose(event.target, true);
});
document.addEventListener("chart:group", (event) => {
  const form = document.querySelector("form[data-selection]");
  const field = form?.elements.namedItem("group");
  if (!field || ![...field.options].some((option) => option.value === event.detail)) return;
  field.value = field.value === event.detail ? "" : event.detail;
  choose(form, true);
});
document.addEventListener("part:replaced", ready);
addEventListener("popstate", show);
ready();
