// When a role changes, the questions that follow from it (favourable value, cut points, combinations) are asked for again.
import { put } from "./part.js";
import "./table.js";

let timer;

async function ask(form) {
  const details = form.querySelector("[data-role-details]");
  const answer = await fetch(form.action.replace(/\/roles$/, "/parts/role-details"), {
    method: "POST", body: new URLSearchParams(new FormData(form)), credentials: "same-origin",
  });
  if (answer.ok) put(details, await answer.text());
}

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("form[data-roles], form[data-recipe]");
  if (form) form.dataset.edited = "";
});

document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-roles]");
  if (!form || event.target.tagName !== "SELECT" || !event.target.name.startsWith("role.")) return;
  clearTimeout(timer);
  timer = setTimeout(() => ask(form), 80);
});

