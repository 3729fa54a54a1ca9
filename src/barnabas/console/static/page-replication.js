// Replication of the whole cluster: a timeline of in-sync sets, elections and moves as they happen.

import { get } from "./api.js";
import { h, replace, svg } from "./dom.js";
import { eventBadge, eventText, newestFirst, partitionLink, partitionName } from "./events.js";
import { clock, count, time } from "./format.js";
import { listen } from "./live.js";
import { badge } from "./page.js";
import { replicaChips } from "./page-topic.js";
import { dataTable } from "./table.js";

const LANES = 16;
const LANE_HEIGHT = 20;
const WIDTH = 900;
const LEFT = 170;
const EVENTS_MAX = 500;

export function replicationPage(context) {
  context.head("Replication", {
    note: h(
      "p",
      { class: "muted" },
      "What the console has seen since it started. What comes and goes between two of its looks is not here.",
    ),
  });
  const lanes = h("div", { class: "lanes" });
  const problems = dataTable({
    title: "Under-replicated partitions",
    columns: problemColumns(),
    key: partitionName,
    empty: "All partitions have all their replicas in sync.",
  });
  const moves = dataTable({
    title: "Reassignments under way",
    columns: moveColumns(),
    key: partitionName,
    empty: "No partition is being moved.",
  });
  const table = dataTable({
    title: "Events",
    columns: eventColumns(),
    key: (event) => `${event.time_ms} ${event.topic} ${event.partition} ${event.kind} ${event.text}`,
    empty: "No election, no change of an ISR, no broker lost yet.",
  });
  context.root.append(
    h("section", { class: "panel" }, h("h2", null, "In-sync replicas over time"), lanes),
    problems.element,
    moves.element,
    table.element,
  );
  let events = [];
  const began = Date.now();

  function draw() {
    events = events.slice(0, EVENTS_MAX);
    table.update(events);
    replace(lanes, isrLanes(events, began));
  }

  context.poll(4000, async () => {
    const answer = await get("/api/replication", null, context.signal);
    events = newestFirst(answer.timeline);
    problems.update(answer.under_replicated);
    moves.update(answer.reassignments);
    draw();
  });
  listen(
    "cluster",
    (event) => {
      events = [event, ...events];
      draw();
    },
    context.signal,
  );
}

const numbers = (list) => (list ?? []).join(", ");

function problemColumns() {
  return [
    { name: "topic", title: "Partition", sort: true, csv: partitionName, cell: partitionLink },
    {
      name: "leader",
      title: "Leader",
      right: true,
      cell: ({ leader }) =>
        leader === null || leader === undefined || leader < 0 ? badge("none", "error") : String(leader),
    },
    {
      name: "replicas",
      title: "Replicas",
      csv: ({ replicas }) => numbers(replicas),
      cell: (row) => replicaChips({ replicas: row.replicas ?? [], isr: row.isr ?? [], leader: row.leader }),
    },
    { name: "isr", title: "ISR", csv: ({ isr }) => numbers(isr), cell: ({ isr }) => numbers(isr) },
  ];
}

function moveColumns() {
  return [
    { name: "topic", title: "Partition", sort: true, csv: partitionName, cell: partitionLink },
    ...["replicas", "adding", "removing"].map((name) => ({
      name,
      title: name[0].toUpperCase() + name.slice(1),
      csv: (row) => numbers(row[name]),
      cell: (row) => numbers(row[name]) || "–",
    })),
  ];
}

function eventColumns() {
  return [
    {
      name: "time_ms",
      title: "Time",
      sort: true,
      csv: ({ time_ms }) => time(time_ms),
      cell: ({ time_ms }) => h("span", { class: "nowrap" }, time(time_ms)),
    },
    { name: "kind", title: "Kind", sort: true, cell: eventBadge },
    {
      name: "topic",
      title: "Partition",
      sort: true,
      csv: (event) => (event.topic ? partitionName(event) : ""),
      cell: (event) => (event.topic ? partitionLink(event) : "–"),
    },
    { name: "text", title: "What happened", csv: eventText, cell: eventText },
    {
      name: "isr",
      title: "ISR",
      wide: true,
      csv: ({ isr }) => numbers(isr),
      cell: ({ isr }) => numbers(isr) || "–",
    },
    {
      name: "leader",
      title: "Leader",
      right: true,
      wide: true,
      cell: ({ leader }) =>
        leader === null || leader === undefined ? "–" : leader < 0 ? "none" : String(leader),
    },
    {
      name: "leader_epoch",
      title: "Epoch",
      right: true,
      wide: true,
      cell: ({ leader_epoch }) => count(leader_epoch),
    },
  ];
}

/** One lane per partition: its colour says how many replicas were in sync, a tick marks an election. */
function isrLanes(events, began) {
  const partitions = new Map();
  for (const event of [...events].reverse()) {
    if (event.topic && event.isr) {
      partitions.set(partitionName(event), [...(partitions.get(partitionName(event)) ?? []), event]);
    }
  }
  if (!partitions.size) {
    return h(
      "p",
      { class: "muted" },
      "No in-sync set has changed yet. When one does, its partition gets a line here.",
    );
  }
  const lanes = [...partitions]
    .sort(([, one], [, other]) => other.at(-1).time_ms - one.at(-1).time_ms)
    .slice(0, LANES);
  const end = Date.now();
  const begin = Math.min(began - 60000, ...lanes.map(([, list]) => list[0].time_ms - 10000));
  const x = (at) => LEFT + ((at - begin) / (end - begin)) * (WIDTH - LEFT - 8);
  const height = lanes.length * LANE_HEIGHT + 24;
  const times = [0, 0.25, 0.5, 0.75, 1].map((share) => begin + share * (end - begin));
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${height}`,
      class: "lanes-plot",
      role: "img",
      "aria-label": "In-sync replicas of partitions over time; the table below has the same events",
    },
    lanes.flatMap(([name, list], index) => lane(name, list, { y: index * LANE_HEIGHT, x, end })),
    times.map((at, index) =>
      svg(
        "text",
        { class: `axis ${["start", "middle", "middle", "middle", "end"][index]}`, x: x(at), y: height - 6 },
        clock(at),
      ),
    ),
  );
}

function lane(name, list, { y, x, end }) {
  const most = Math.max(...list.map(({ isr }) => isr.length));
  const spans = list.map((event, index) => {
    const until = list[index + 1]?.time_ms ?? end;
    const kind =
      event.leader !== null && event.leader < 0
        ? "offline"
        : event.isr.length < most
          ? event.isr.length <= 1
            ? "single"
            : "short"
          : "full";
    const label = `${clock(event.time_ms)} ISR ${event.isr.join(", ")}, leader ${event.leader}, epoch ${event.leader_epoch}`;
    return svg(
      "rect",
      {
        class: `span ${kind}`,
        x: x(event.time_ms),
        y: y + 4,
        width: Math.max(2, x(until) - x(event.time_ms)),
        height: LANE_HEIGHT - 8,
      },
      svg("title", null, label),
    );
  });
  const before = svg("rect", {
    class: "span unknown",
    x: LEFT,
    y: y + 4,
    width: Math.max(0, x(list[0].time_ms) - LEFT),
    height: LANE_HEIGHT - 8,
  });
  const ticks = list
    .filter(({ kind }) => kind === "election")
    .map((event) =>
      svg(
        "path",
        { class: "tick", d: `M${x(event.time_ms)} ${y + 1}v${LANE_HEIGHT - 2}` },
        svg("title", null, event.text),
      ),
    );
  const shown = name.length > 26 ? `${name.slice(0, 12)}…${name.slice(-12)}` : name;
  return [
    svg("text", { class: "axis end", x: LEFT - 8, y: y + LANE_HEIGHT - 6 }, shown),
    before,
    ...spans,
    ...ticks,
  ];
}
