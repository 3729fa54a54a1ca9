// The messages of a topic: where to begin, filters and forms (all in the address), pages, and the live tail.

import { get, query as queryText } from "./api.js";
import { csvText } from "./csv.js";
import { h, replace } from "./dom.js";
import { count, time } from "./format.js";
import { filterForm } from "./message-filters.js";
import { messageCells, messageDetail, messageName } from "./message-view.js";
import { copyButton } from "./notices.js";
import { produceAction } from "./produce.js";
import { changeQuery, currentQuery } from "./router.js";
import { startTail } from "./tail.js";

const PASSED = [
  "partition",
  "from",
  "offset",
  "time_ms",
  "limit",
  "cursor",
  "direction",
  "key",
  "value",
  "header",
  "text",
  "regex",
  "json_path",
  "key_as",
  "value_as",
  "schema",
  "isolation",
  "control",
];
const LIMIT = 50;

/** What the server is asked for, from the address. Without a choice: the newest messages, the newest first. */
function askedMessages(query) {
  const asked = Object.fromEntries(PASSED.filter((name) => query[name]).map((name) => [name, query[name]]));
  asked.from ??= "end";
  asked.limit ??= LIMIT;
  asked.direction ??= asked.from === "end" ? "older" : "newer";
  return asked;
}

/** Rows of messages that open and close. */
class MessageTable {
  constructor(topic, { opened, again }) {
    this.topic = topic;
    this.opened = opened;
    this.again = again;
    this.items = [];
    this.body = h("tbody");
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => this.pressed(event));
    this.messages = new WeakMap();
    const titles = [
      ["Partition", "right"],
      ["Offset", "right"],
      ["Time", ""],
      ["Key", ""],
      ["Value", ""],
    ];
    const head = h(
      "thead",
      null,
      h(
        "tr",
        null,
        titles.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)),
      ),
    );
    this.element = h(
      "div",
      { class: "scroll" },
      h("table", { class: "messages", "aria-label": "Messages" }, head, this.body),
    );
  }

  row(message) {
    const kind = message.control ? "control" : message.transaction === "aborted" ? "aborted" : "";
    const row = h(
      "tr",
      {
        class: `linked ${kind}`,
        tabindex: 0,
        "aria-expanded": "false",
        data: { message: messageName(message) },
      },
      messageCells(message),
    );
    this.messages.set(row, message);
    return row;
  }

  show(items, emptyText) {
    this.items = items;
    replace(
      this.body,
      items.length
        ? items.map((message) => this.row(message))
        : h("tr", { class: "empty" }, h("td", { colspan: 5 }, emptyText)),
    );
  }

  /** Puts new messages on top and drops the oldest, so that the page does not grow. */
  prepend(items, max) {
    this.items = [...items, ...this.items].slice(0, max);
    this.body.querySelector("tr.empty")?.remove();
    this.body.prepend(...items.map((message) => this.row(message)));
    while (this.body.children.length > max) {
      this.body.lastElementChild.remove();
    }
  }

  open(name) {
    const row = [...this.body.children].find((each) => each.dataset.message === name);
    if (row && row.getAttribute("aria-expanded") === "false") {
      this.toggle(row);
      row.scrollIntoView({ block: "nearest" });
    }
  }

  toggle(row) {
    const open = row.getAttribute("aria-expanded") === "true";
    row.setAttribute("aria-expanded", String(!open));
    if (open) {
      row.nextElementSibling.remove();
      return;
    }
    const message = this.messages.get(row);
    row.after(
      h(
        "tr",
        { class: "detail" },
        h(
          "td",
          { colspan: 5 },
          messageDetail(this.topic, message, () => this.again(message)),
        ),
      ),
    );
    this.opened(message);
  }

  clicked(event) {
    const row = event.target.closest("tr.linked");
    if (row && !event.target.closest("a, button") && !window.getSelection()?.toString()) {
      this.toggle(row);
    }
  }

  pressed(event) {
    const row = event.target;
    if (!row.matches("tr.linked")) {
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.toggle(row);
      return;
    }
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const rows = [...this.body.querySelectorAll("tr.linked")];
      rows[rows.indexOf(row) + step]?.focus();
    }
  }

  csv() {
    const titles = ["partition", "offset", "time", "key", "value", "headers"];
    const rows = this.items.map((message) => [
      message.partition,
      message.offset,
      time(message.time_ms),
      message.key?.text,
      message.value?.text,
      (message.headers ?? []).map(({ name, text }) => `${name}=${text ?? ""}`).join(" "),
    ]);
    return csvText(titles, rows);
  }
}

export function messagesTab(context, name, url, state) {
  const note = h("p", { class: "muted note", role: "status" });
  const links = h("div", { class: "tools" });
  const pager = h("nav", { class: "pager", "aria-label": "More messages" });
  const tail = { running: null };
  const table = new MessageTable(name, {
    opened: () => tail.running?.pause(),
    again: (message) => produceAction(name, state.partitions.length, message, () => !tail.running && load()),
  });
  const form = filterForm(state);
  const controls = h("div", { class: "tail-controls" });
  const head = h("div", { class: "table-head" }, h("div", { class: "tail-status" }, controls, note), links);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  context.root.append(form.element, problem, head, table.element, pager);

  function fail(error) {
    if (!context.left && error.name !== "AbortError") {
      problem.hidden = false;
      problem.textContent = error.message;
    }
  }

  let newest = 0;

  async function load() {
    newest += 1;
    const number = newest;
    const query = currentQuery();
    note.textContent = "Reading…";
    table.element.setAttribute("aria-busy", "true");
    try {
      const answer = await get(`${url}/messages`, askedMessages(query), context.signal);
      if (number !== newest || tail.running) {
        return; // something else is asked for by now
      }
      problem.hidden = true;
      table.show(answer.items, "No messages match.");
      drawAround(answer, query);
      if (query.open) {
        table.open(query.open);
      }
    } catch (error) {
      if (number === newest) {
        note.textContent = "";
        fail(error);
      }
    } finally {
      if (number === newest) {
        table.element.removeAttribute("aria-busy");
      }
    }
  }

  function drawAround(answer, query) {
    const asked = askedMessages(query);
    const why = {
      end: "that is all there is",
      limit: "there may be more",
      scan_limit: "stopped after many that did not match",
    }[answer.stopped_by];
    note.textContent = `${count(answer.items.length)} shown, ${count(answer.scanned)} read${why ? `; ${why}` : ""}`;
    drawLinks(asked);
    const more =
      answer.stopped_by !== "end" && answer.cursor
        ? () => changeQuery({ cursor: answer.cursor, open: null })
        : null;
    const label = asked.direction === "older" ? "Older ›" : "Newer ›";
    replace(
      pager,
      query.cursor
        ? h(
            "button",
            { type: "button", class: "small", on: { click: () => changeQuery({ cursor: null }) } },
            "« First",
          )
        : null,
      more
        ? h(
            "button",
            { type: "button", class: "small", on: { click: more } },
            answer.stopped_by === "scan_limit" ? "Go on reading ›" : label,
          )
        : null,
    );
  }

  function drawLinks(asked) {
    const { limit: _limit, cursor: _cursor, ...wanted } = asked;
    const download = (format) =>
      h(
        "a",
        {
          class: "button small",
          title: "At most 10,000 messages, from where this page begins to read",
          href: `${url}/download${queryText({ ...wanted, format })}`,
          download: "",
        },
        format === "csv" ? "Download CSV" : "Download JSON lines",
      );
    replace(
      links,
      download("jsonl"),
      download("csv"),
      copyButton("CSV", () => table.csv(), "Copy CSV"),
    );
  }

  function update() {
    const query = currentQuery();
    form.show(query);
    tail.running?.stop();
    tail.running = null;
    replace(controls);
    if (query.tail === "true") {
      note.textContent = "";
      replace(pager);
      table.show([], "Waiting for messages…");
      drawLinks(askedMessages(query));
      tail.running = startTail({ url: `${url}/tail${queryText(tailAsked(query))}`, table, note, controls });
    } else {
      load();
    }
  }

  context.onRefresh(() => (tail.running ? null : load()));
  context.signal.addEventListener("abort", () => tail.running?.stop());
  update();
  return { update };
}

function tailAsked(query) {
  const {
    from: _from,
    offset: _offset,
    time_ms: _time,
    limit: _limit,
    cursor: _cursor,
    direction: _direction,
    ...filters
  } = askedMessages(query);
  return filters;
}
