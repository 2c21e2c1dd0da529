// Sorts tables by their data-value (never by text) and lets the arrow keys walk rows that are linked to a chart.

function value(cell) {
  const given = cell.dataset.value ?? cell.textContent.trim();
  if (given === "") return null;
  const number = Number(given);
  return Number.isNaN(number) ? given.toLocaleLowerCase() : number;
}

function compare(a, b, down) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1; // what is missing stays last
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  const order = typeof a === "number" ? a - b : a.localeCompare(b);
  return down ? -order : order;
}

function sort(table, column, down) {
  const rows = [...table.tBodies[0].rows].map((row) => [value(row.cells[column]), row]);
  rows.sort(([a], [b]) => compare(a, b, down));
  table.tBodies[0].append(...rows.map(([, row]) => row));
  for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  table.dataset.sortedBy = column;
  table.dataset.sortedDown = down ? "yes" : "no";
  enter(table);
}

// One row of a linked table is a tab stop; the arrow keys move from row to row.
function enter(table) {
  const rows = [...table.querySelectorAll("tr[data-key]")];
  for (const row of rows) row.tabIndex = -1;
  if (rows.length) rows[0].tabIndex = 0;
}

function walk(event) {
  const row = event.target.closest?.("tr[data-key]");
  if (!row || event.target !== row) return;
  const steps = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling,
    Home: row.parentElement.firstElementChild, End: row.parentElement.lastElementChild };
  const target = steps[event.key];
  if (!target) return;
  event.preventDefault();
  row.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
}

function ready(root) {
  for (const table of root.querySelectorAll("table[data-sortable]")) enter(table);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("table[data-sortable] th button");
  if (!button) return;
  const table = button.closest("table");
  const column = Number(button.dataset.column);
  sort(table, column, table.dataset.sortedBy === String(column) && table.dataset.sortedDown === "no");
});
document.addEventListener("table:sort", ({ detail }) => {
  const table = document.getElementById(detail.id);
  if (table) sort(table, detail.by, detail.down);
});
document.addEventListener("keydown", walk);
document.addEventListener("part:replaced", (event) => ready(event.target));
ready(document);
