// Replication of one topic as it is: what each replica has, the high watermark, lag, and the history of epochs.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { bytes, count, isKnown } from "./format.js";
import { listen } from "./live.js";
import { badge } from "./page.js";
import { eventLine, newestFirst } from "./events.js";
import { changeQuery, currentQuery, to } from "./router.js";
import { dataTable } from "./table.js";

const CARDS = 20;
const EPOCHS_SHOWN = 12;

/** Rows of replicas: one per partition and broker, for the table and its CSV. */
function flat(partitions) {
  return partitions.flatMap((partition) =>
    partition.replicas.map((replica) => ({
      ...replica,
      partition: partition.index,
      is_leader: replica.broker === partition.leader,
      high_watermark: partition.high_watermark,
    })),
  );
}

export function topicReplication(context, name, url) {
  const cards = h("div", { class: "cards" });
  const pager = h("nav", { class: "pager", "aria-label": "Partitions" });
  const table = dataTable({
    title: "Replicas",
    key: (replica) => `${replica.partition}-${replica.broker}-${replica.is_future}`,
    columns: [
      { name: "partition", title: "Partition", right: true, sort: true },
      {
        name: "broker",
        title: "Broker",
        right: true,
        sort: true,
        cell: ({ broker }) => h("a", { href: to.broker(broker) }, String(broker)),
      },
      { name: "role", title: "Role", csv: roleText, cell: (replica) => roleBadges(replica) },
      { name: "end", title: "End", right: true, sort: true, cell: ({ end }) => count(end) },
      {
        name: "high_watermark",
        title: "High watermark",
        right: true,
        wide: true,
        cell: ({ high_watermark }) => count(high_watermark),
      },
      {
        name: "lag",
        title: "Lag",
        right: true,
        sort: true,
        cell: ({ lag }) => h("b", { class: lag > 0 ? "lagging" : "" }, count(lag)),
      },
      {
        name: "size_bytes",
        title: "Size",
        right: true,
        sort: true,
        wide: true,
        cell: ({ size_bytes }) => bytes(size_bytes),
      },
    ],
  });
  const events = h("ol", { class: "events" });
  let partitions = [];
  let known = [];

  function draw() {
    const first = Number(currentQuery().part ?? 0);
    replace(cards, partitions.slice(first, first + CARDS).map(partitionCard));
    const step = (label, target) =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          disabled: target < 0 || target >= partitions.length,
          on: { click: () => changeQuery({ part: target || null }) },
        },
        label,
      );
    replace(
      pager,
      partitions.length > CARDS
        ? [
            step("‹ Previous", first - CARDS),
            h(
              "span",
              null,
              `Partitions ${first} to ${Math.min(first + CARDS, partitions.length) - 1} of ${partitions.length}`,
            ),
            step("Next ›", first + CARDS),
          ]
        : null,
    );
    table.update(flat(partitions));
  }

  const drawEvents = () =>
    replace(
      events,
      known.length
        ? known.slice(0, 50).map(eventLine)
        : h("li", { class: "muted" }, "Nothing happened to this topic since the console watches."),
    );
  context.root.append(
    cards,
    pager,
    h("section", { class: "panel" }, h("h2", null, "Elections, ISR changes, moves"), events),
    table.element,
  );
  context.poll(2000, async () => {
    partitions = (await get(`${url}/replication`, null, context.signal)).partitions;
    draw();
  });
  context.poll(15000, async () => {
    const { timeline } = await get("/api/replication", { topic: name }, context.signal);
    known = newestFirst(timeline.filter(({ topic }) => topic === name));
    drawEvents();
  });
  listen(
    "cluster",
    (event) => {
      if (event.topic === name) {
        known = [event, ...known];
        drawEvents();
      }
    },
    context.signal,
  );
  return { update: draw };
}

function roleText({ is_leader, in_sync, is_future, alive }) {
  return [
    is_future ? "moving here" : is_leader ? "leader" : "follower",
    in_sync ? "in sync" : "not in sync",
    alive ? "" : "not reachable",
  ]
    .filter(Boolean)
    .join(", ");
}

function roleBadges({ is_leader, in_sync, is_future, alive }) {
  return [
    is_future ? badge("future", "accent") : is_leader ? badge("leader", "accent") : badge("follower"),
    in_sync ? badge("in sync", "ok") : badge("not in sync", "warn"),
    alive ? null : badge("not reachable", "error"),
  ];
}

/** Bars show the last part of the log: from a bit before the shortest replica to the longest. */
function barScale({ replicas, high_watermark }) {
  const ends = [...replicas.map(({ end }) => end), high_watermark].filter((end) => isKnown(end) && end >= 0);
  const top = Math.max(1, ...ends);
  const low = ends.length ? Math.min(...ends) : 0;
  const bottom = low === top ? 0 : Math.max(0, low - (top - low));
  return (end) => `${Math.max(0, Math.min(100, ((end - bottom) / Math.max(1, top - bottom)) * 100))}%`;
}

function partitionCard(partition) {
  const at = barScale(partition);
  return h(
    "section",
    { class: "panel replica-card", "aria-label": `Partition ${partition.index}` },
    h(
      "div",
      { class: "table-head" },
      h("h2", null, `Partition ${partition.index}`),
      h(
        "span",
        { class: "muted" },
        `leader ${partition.leader ?? "–"} · epoch ${partition.leader_epoch ?? "–"} · high watermark ${count(partition.high_watermark)}`,
      ),
    ),
    partition.replicas.map((replica) => replicaBar(replica, partition, at)),
    epochHistory(partition.epochs ?? []),
  );
}

function replicaBar(replica, partition, at) {
  const leads = replica.broker === partition.leader && !replica.is_future;
  const known = isKnown(replica.end) && replica.end >= 0;
  const fill = h("i", { class: "fill" });
  fill.style.width = known ? at(replica.end) : "0";
  const mark = isKnown(partition.high_watermark)
    ? h("i", { class: "watermark", title: `high watermark ${partition.high_watermark}` })
    : null;
  if (mark) {
    mark.style.left = at(partition.high_watermark);
  }
  const kind = !replica.alive ? "dead" : replica.in_sync ? (leads ? "leader" : "in") : "out";
  const state = !replica.alive
    ? "not reachable"
    : replica.in_sync
      ? leads
        ? "leader"
        : "in sync"
      : "not in sync";
  return h(
    "div",
    { class: `replica ${kind}` },
    h(
      "span",
      { class: "replica-name" },
      h("a", { href: to.broker(replica.broker) }, `broker ${replica.broker}`),
      replica.is_future ? " (future)" : "",
    ),
    h("span", { class: "replica-state" }, state),
    h("span", { class: "bar", "aria-hidden": "true" }, fill, mark),
    h(
      "span",
      { class: "replica-end" },
      known ? count(replica.end) : "–",
      replica.lag > 0 ? h("b", { class: "lagging" }, ` −${count(replica.lag)}`) : null,
    ),
  );
}

function epochHistory(epochs) {
  if (!epochs.length) {
    return null;
  }
  const shown = [...epochs].sort((one, other) => one.epoch - other.epoch).slice(-EPOCHS_SHOWN);
  return h(
    "p",
    { class: "epochs" },
    h("span", { class: "muted" }, "epochs "),
    epochs.length > shown.length
      ? h("span", { class: "muted" }, `${epochs.length - shown.length} earlier … `)
      : null,
    shown.map(({ epoch, start }) =>
      h(
        "span",
        { class: "epoch", title: `epoch ${epoch} begins at offset ${start}` },
        h("b", null, String(epoch)),
        ` from ${count(start)}`,
      ),
    ),
  );
}
