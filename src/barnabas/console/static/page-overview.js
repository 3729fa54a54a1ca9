// The overview: health, brokers, throughput as it happens, the last events of the cluster.

import { get } from "./api.js";
import { lineChart } from "./chart.js";
import { h, isOwnPath, replace } from "./dom.js";
import { eventLine, newestFirst } from "./events.js";
import { byteRate, bytes, count, rate } from "./format.js";
import { listen } from "./live.js";
import { badge, tiles } from "./page.js";
import { to } from "./router.js";
import { dataTable } from "./table.js";

const EVENTS_SHOWN = 12;
const POINTS_MAX = 900;

export function brokerColumns() {
  return [
    {
      name: "id",
      title: "Broker",
      sort: true,
      cell: (broker) => [
        h("a", { href: to.broker(broker.id) }, String(broker.id)),
        broker.is_controller ? [" ", badge("controller", "accent")] : null,
      ],
    },
    {
      name: "alive",
      title: "State",
      csv: (broker) => (broker.alive ? "alive" : "not reachable"),
      cell: (broker) => (broker.alive ? badge("alive", "ok") : badge("not reachable", "error")),
    },
    {
      name: "host",
      title: "Address",
      csv: (broker) => `${broker.host}:${broker.port}`,
      cell: (broker) => h("code", null, `${broker.host}:${broker.port}`),
    },
    {
      name: "rack",
      title: "Rack",
      wide: true,
      csv: (broker) => broker.rack ?? "",
      cell: (broker) => broker.rack ?? "–",
    },
    { name: "leaders", title: "Leaders", right: true, sort: true, cell: (broker) => count(broker.leaders) },
    {
      name: "replicas",
      title: "Replicas",
      right: true,
      sort: true,
      cell: (broker) => count(broker.replicas),
    },
    {
      name: "size_bytes",
      title: "Size",
      right: true,
      sort: true,
      cell: (broker) => bytes(broker.size_bytes),
    },
  ];
}

export function overviewPage(context) {
  context.head("Overview");
  const figures = h("div");
  const health = h("section", { class: "panel health", "aria-label": "Health" });
  const messages = liveChart(context, "Messages per second", "messages", "messages_per_second", rate);
  const traffic = liveChart(context, "Bytes per second", "bytes", "bytes_per_second", byteRate, 1024);
  const brokers = dataTable({
    title: "Brokers",
    columns: brokerColumns(),
    key: (broker) => broker.id,
    link: (broker) => to.broker(broker.id),
  });
  const events = eventPanel(context);
  context.root.append(
    figures,
    health,
    h("div", { class: "columns" }, messages, traffic),
    brokers.element,
    events,
  );

  context.poll(5000, async () => {
    const overview = await get("/api/overview", null, context.signal);
    const { counts } = overview;
    const bad = (value, kind) => (value ? kind : "");
    replace(
      figures,
      tiles([
        [
          "Brokers",
          `${overview.brokers.filter(({ alive }) => alive).length} of ${overview.brokers.length}`,
          bad(
            overview.brokers.some(({ alive }) => !alive),
            "error",
          ),
          "/brokers",
        ],
        ["Topics", count(counts.topics), "", "/topics"],
        ["Partitions", count(counts.partitions)],
        ["Groups", count(counts.groups), "", "/groups"],
        [
          "Under-replicated",
          count(counts.under_replicated),
          bad(counts.under_replicated, "warn"),
          "/topics?problem=under_replicated&internal=true",
        ],
        [
          "At min ISR",
          count(counts.at_min_isr),
          bad(counts.at_min_isr, "warn"),
          "/topics?problem=at_min_isr&internal=true",
        ],
        [
          "Under min ISR",
          count(counts.under_min_isr),
          bad(counts.under_min_isr, "error"),
          "/topics?problem=under_min_isr&internal=true",
        ],
        [
          "Offline",
          count(counts.offline),
          bad(counts.offline, "error"),
          "/topics?problem=offline&internal=true",
        ],
      ]),
    );
    replace(health, healthLines(overview.health));
    brokers.update(overview.brokers);
  });
}

function healthLines(lines) {
  const signs = { ok: "✓", warning: "!", error: "✕" };
  return (lines ?? []).map(({ severity, text, link }) =>
    h(
      "p",
      { class: severity },
      h("span", { class: "sign", "aria-hidden": "true" }, signs[severity] ?? "·"),
      isOwnPath(link) ? h("a", { href: link }, text) : text,
    ),
  );
}

/** A chart that begins with the server's samples and goes on with those that its events bring. */
function liveChart(context, title, name, field, format, base) {
  const chart = lineChart({ title, format, base });
  let points = [];
  context.poll(60000, async () => {
    points = (await get("/api/series", { name }, context.signal)).points;
    chart.draw([{ name: title, points }]);
  });
  listen(
    "sample",
    (sample) => {
      if (sample[field] !== null && sample.time_ms > (points.at(-1)?.[0] ?? 0)) {
        points = [...points.slice(-POINTS_MAX), [sample.time_ms, sample[field]]];
        chart.draw([{ name: title, points }]);
      }
    },
    context.signal,
  );
  return chart.element;
}

function eventPanel(context) {
  const list = h("ol", { class: "events" });
  const panel = h(
    "section",
    { class: "panel" },
    h("div", { class: "table-head" }, h("h2", null, "Last events"), h("a", { href: "/replication" }, "All")),
    list,
  );
  let events = [];
  const draw = () =>
    replace(
      list,
      events.length
        ? events.map(eventLine)
        : h(
            "li",
            { class: "muted" },
            "No election, no change of an ISR, no broker lost since the console watches.",
          ),
    );
  context.poll(15000, async () => {
    const { timeline } = await get("/api/replication", null, context.signal);
    events = newestFirst(timeline).slice(0, EVENTS_SHOWN);
    draw();
  });
  listen(
    "cluster",
    (event) => {
      events = [event, ...events].slice(0, EVENTS_SHOWN);
      draw();
    },
    context.signal,
  );
  return panel;
}
