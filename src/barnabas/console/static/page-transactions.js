// Transactions: those that are open, which partitions they hold back, and aborting one.

import { actionButton, openAction } from "./action.js";
import { get } from "./api.js";
import { h } from "./dom.js";
import { ago, count, duration, text } from "./format.js";
import { badge } from "./page.js";
import { to } from "./router.js";
import { dataTable } from "./table.js";

const STATES = { ongoing: "warn", completecommit: "ok", completeabort: "", empty: "" };

export function transactionsPage(context) {
  context.head("Transactions");
  const holding = dataTable({
    title: "Partitions that an open transaction holds back",
    key: ({ topic, partition, producer_id }) => `${topic}-${partition}-${producer_id}`,
    empty: "No open transaction holds consumers with read_committed back.",
    columns: holdingColumns(context),
    alwaysDraw: true,
  });
  const table = dataTable({
    title: "Transactional ids",
    key: (item) => item.transactional_id,
    empty: "No producer uses transactions.",
    columns: transactionColumns(context),
    alwaysDraw: true,
  });
  context.root.append(holding.element, table.element);
  context.poll(4000, async () => {
    const answer = await get("/api/transactions", { size: 500 }, context.signal);
    holding.update(answer.holding);
    table.update(answer.items);
  });
}

function holdingColumns(context) {
  return [
    {
      name: "topic",
      title: "Partition",
      sort: true,
      csv: ({ topic, partition }) => `${topic}-${partition}`,
      cell: ({ topic, partition }) => h("a", { href: to.topic(topic) }, `${topic}-${partition}`),
    },
    {
      name: "last_stable_offset",
      title: "Last stable offset",
      right: true,
      cell: (row) =>
        row.last_stable_offset === null
          ? "–"
          : h(
              "a",
              { href: to.message(row.topic, row.partition, row.last_stable_offset) },
              count(row.last_stable_offset),
            ),
    },
    {
      name: "high_watermark",
      title: "High watermark",
      right: true,
      cell: (row) => count(row.high_watermark),
    },
    {
      name: "behind",
      title: "Held back",
      right: true,
      csv: (row) => row.high_watermark - row.last_stable_offset,
      cell: (row) => h("b", { class: "lagging" }, count(row.high_watermark - row.last_stable_offset)),
    },
    { name: "producer_id", title: "Producer", right: true, cell: (row) => text(row.producer_id) },
    {
      name: "started_ms",
      title: "Open for",
      right: true,
      cell: (row) => (row.started_ms ? duration(Date.now() - row.started_ms) : "–"),
    },
    {
      name: "abort",
      title: "",
      csv: null,
      cell: (row) => actionButton("Abort", () => abortAt(row, context), { danger: true, small: true }),
    },
  ];
}

function transactionColumns(context) {
  return [
    {
      name: "transactional_id",
      title: "Transactional id",
      sort: true,
      cell: (item) => h("span", { class: "mono" }, item.transactional_id),
    },
    {
      name: "state",
      title: "State",
      sort: true,
      cell: (item) => badge(item.state, STATES[String(item.state).toLowerCase()] ?? "accent"),
    },
    {
      name: "producer_id",
      title: "Producer",
      right: true,
      sort: true,
      cell: (item) => `${text(item.producer_id)} / ${text(item.producer_epoch)}`,
    },
    {
      name: "started_ms",
      title: "Started",
      sort: true,
      cell: (item) => (item.started_ms > 0 ? ago(item.started_ms) : "–"),
    },
    {
      name: "timeout_ms",
      title: "Timeout",
      right: true,
      wide: true,
      cell: (item) => duration(item.timeout_ms),
    },
    {
      name: "coordinator",
      title: "Coordinator",
      right: true,
      wide: true,
      cell: (item) => text(item.coordinator),
    },
    {
      name: "partitions",
      title: "Partitions",
      csv: ({ partitions }) => partitions.map(({ topic, partition }) => `${topic}-${partition}`).join(" "),
      cell: ({ partitions }) =>
        partitions.map(({ topic, partition }) => `${topic}-${partition}`).join(", ") || "–",
    },
    {
      name: "abort",
      title: "",
      csv: null,
      cell: (item) =>
        /ongoing/i.test(item.state)
          ? actionButton("Abort", () => abortId(item, context), { danger: true, small: true })
          : null,
    },
  ];
}

const WARNING = "What the transaction wrote is discarded, and its producer is refused when it goes on.";

function abortId({ transactional_id }, context) {
  openAction({
    title: `Abort the transaction of ${transactional_id}`,
    text: WARNING,
    verb: "Abort",
    danger: true,
    confirm: transactional_id,
    request: () => ({ method: "POST", url: "/api/transactions/abort", body: { transactional_id } }),
    done: () => context.refresh(),
  });
}

function abortAt(row, context) {
  const name = `${row.topic}-${row.partition}`;
  openAction({
    title: `Abort the transaction that holds ${name} back`,
    text: WARNING,
    verb: "Abort",
    danger: true,
    confirm: name,
    request: () => ({
      method: "POST",
      url: "/api/transactions/abort",
      body: { topic: row.topic, partition: row.partition, start_offset: row.last_stable_offset },
    }),
    done: () => context.refresh(),
  });
}
