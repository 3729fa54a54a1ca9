// Tables: sorted by their heads, walked through with the arrow keys, copied as CSV, and updated in place (only rows
// that changed are replaced, so that a refresh does not disturb a selection).

import { csvText } from "./csv.js";
import { h, nodes, replace } from "./dom.js";
import { count } from "./format.js";
import { copyButton } from "./notices.js";
import { go } from "./router.js";

/**
 * dataTable({title, columns, key, link, empty, onSort, allItems, tools}).
 * A column: {name, title, cell(item), csv(item), sort, right, wide}. `cell` gives text or elements, `csv` a value that
 * is also used for sorting. `wide` columns are left out on phones. With `onSort` the server sorts; `allItems` gives
 * all rows of a paged list for the CSV.
 */
export function dataTable(spec) {
  const { columns, key } = spec;
  const state = { items: [], sort: spec.sort ?? null, order: spec.order ?? "asc" };
  const rows = new Map();
  const body = h("tbody");
  const headRow = h("tr");
  const amount = h("span", { class: "amount" });
  const value = (column, item) => (column.csv ? column.csv(item) : item[column.name]);

  async function csv() {
    const items = spec.allItems ? await spec.allItems() : sorted();
    const kept = columns.filter((column) => column.csv !== null);
    return csvText(
      kept.map((column) => column.title),
      items.map((item) => kept.map((column) => value(column, item))),
    );
  }

  function sorted() {
    const column = columns.find(({ name }) => name === state.sort);
    if (spec.onSort || !column) {
      return state.items;
    }
    const sign = state.order === "desc" ? -1 : 1;
    return [...state.items].sort((one, other) => sign * compare(value(column, one), value(column, other)));
  }

  function sortBy(name) {
    state.order = state.sort === name && state.order === "asc" ? "desc" : "asc";
    state.sort = name;
    if (spec.onSort) {
      spec.onSort(state.sort, state.order);
    } else {
      draw();
    }
  }

  let headOf = null;

  /** Only when the order changes: a head that was replaced would lose the focus. */
  function drawHead() {
    const order = `${state.sort} ${state.order}`;
    if (order === headOf) {
      return;
    }
    const focused = [...headRow.children].indexOf(document.activeElement?.closest?.("th"));
    headOf = order;
    const cells = columns.map((column) => {
      const active = state.sort === column.name;
      const sort = active ? (state.order === "desc" ? "descending" : "ascending") : null;
      const classes = `${column.right ? "right" : ""} ${column.wide ? "wide-only" : ""}`;
      const arrow = h("i", { "aria-hidden": "true" }, active ? (state.order === "desc" ? "↓" : "↑") : "");
      const content = column.sort
        ? h(
            "button",
            { type: "button", class: "sort", on: { click: () => sortBy(column.name) } },
            column.right ? [arrow, column.title] : [column.title, arrow],
          )
        : column.title;
      return h("th", { scope: "col", class: classes, "aria-sort": sort }, content);
    });
    replace(headRow, cells);
    headRow.children[focused]?.querySelector("button")?.focus();
  }

  function makeRow(item) {
    const cells = columns.map((column) => {
      const content = column.cell ? column.cell(item) : item[column.name];
      const classes = `${column.right ? "right" : ""} ${column.wide ? "wide-only" : ""}`;
      return h("td", { class: classes }, content);
    });
    const row = h("tr", null, cells);
    const address = spec.link?.(item);
    if (address) {
      row.classList.add("linked");
      row.dataset.href = address;
    }
    return row;
  }

  function draw() {
    const items = sorted();
    const seen = new Set();
    const wanted = items.map((item) => {
      const name = String(key(item));
      seen.add(name);
      const signature = JSON.stringify(item);
      const known = rows.get(name);
      if (known && known.signature === signature && !spec.alwaysDraw) {
        return known.row;
      }
      const row = makeRow(item);
      if (known?.row === document.activeElement) {
        queueMicrotask(() => row.focus());
      }
      rows.set(name, { row, signature });
      return row;
    });
    for (const name of rows.keys()) {
      if (!seen.has(name)) {
        rows.delete(name);
      }
    }
    place(body, wanted.length ? wanted : [emptyRow(columns.length, spec.empty)]);
    const first = body.querySelector("tr.linked");
    if (first && !body.querySelector("tr[tabindex='0']")) {
      first.tabIndex = 0;
    }
    drawHead();
  }

  const titleElement = spec.title ? h("h2", null, spec.title, amount) : amount;
  const tools = h("div", { class: "tools" }, spec.tools, copyButton("CSV", csv, "Copy CSV"));
  const table = h("table", { "aria-label": spec.title ?? spec.label }, h("thead", null, headRow), body);
  table.addEventListener("keydown", (event) => walk(event, body));
  table.addEventListener("click", (event) => openRow(event));
  const element = h(
    "section",
    { class: "table" },
    h("div", { class: "table-head" }, titleElement, tools),
    h("div", { class: "scroll", tabindex: -1 }, table),
  );
  draw();
  return {
    element,
    csv,
    redraw: draw,
    update(items, { total = items.length, sort, order } = {}) {
      state.items = items;
      if (spec.onSort) {
        state.sort = sort ?? state.sort;
        state.order = order ?? state.order;
      }
      amount.textContent = count(total);
      draw();
    },
  };
}

function place(body, wanted) {
  const same =
    body.children.length === wanted.length && wanted.every((row, index) => body.children[index] === row);
  if (!same) {
    body.replaceChildren(...nodes(wanted));
  }
}

function emptyRow(columns, text) {
  return h("tr", { class: "empty" }, h("td", { colspan: columns }, text ?? "Nothing here."));
}

function compare(one, other) {
  const missing = (value) => value === null || value === undefined || value === "";
  if (missing(one) || missing(other)) {
    return Number(missing(one)) - Number(missing(other));
  }
  if (typeof one === "number" && typeof other === "number") {
    return one - other;
  }
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

function openRow(event) {
  const row = event.target.closest("tr[data-href]");
  const selects = window.getSelection()?.toString();
  if (row && !selects && !event.target.closest("a, button, input, select, textarea, summary, pre")) {
    go(row.dataset.href);
  }
}

const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

function walk(event, body) {
  const row = event.target.closest("tr.linked");
  if (!row || event.target !== row) {
    return;
  }
  if (event.key === "Enter" && row.dataset.href) {
    go(row.dataset.href);
    return;
  }
  const linked = [...body.querySelectorAll("tr.linked")];
  const ends = { Home: 0, End: linked.length - 1 };
  const index = event.key in ends ? ends[event.key] : linked.indexOf(row) + (STEPS[event.key] ?? 0);
  const next = linked[index];
  if (next && (event.key in STEPS || event.key in ends)) {
    event.preventDefault();
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}
