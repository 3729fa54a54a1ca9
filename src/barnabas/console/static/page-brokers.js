// Brokers: the list, and one broker with its settings and log directories.

import { get, path } from "./api.js";
import { configTable } from "./configs.js";
import { h, replace } from "./dom.js";
import { bytes, count } from "./format.js";
import { brokerColumns } from "./page-overview.js";
import { badge, tabs, tiles } from "./page.js";
import { to } from "./router.js";
import { dataTable } from "./table.js";

export function brokersPage(context) {
  context.head("Brokers");
  const table = dataTable({
    title: "Brokers",
    columns: brokerColumns(),
    key: (broker) => broker.id,
    link: (broker) => to.broker(broker.id),
  });
  context.root.append(table.element);
  context.poll(5000, async () =>
    table.update((await get("/api/brokers", { size: 500 }, context.signal)).items),
  );
}

export function brokerPage(context) {
  const id = context.params.broker;
  const tab = context.params.tab ?? "logs";
  const url = path("api", "brokers", id);
  const figures = h("div");
  context.head(`Broker ${id}`, { above: h("a", { href: "/brokers" }, "Brokers") });
  const entries = [
    ["logs", "Log directories", to.broker(id)],
    ["configs", "Configuration", to.broker(id, "configs")],
  ];
  context.root.append(figures, tabs("Broker", entries, tab));
  const handle = tab === "configs" ? configTable(context, `${url}/configs`, `broker ${id}`) : null;
  const directories = tab === "logs" ? directoryTable(context) : null;
  const replicas = tab === "logs" ? replicaTable(context) : null;
  context.poll(5000, async () => {
    const broker = await get(url, null, context.signal);
    replace(figures, brokerFigures(broker));
    directories?.update(broker.log_dirs);
    replicas?.update(
      broker.log_dirs.flatMap((directory) =>
        directory.replicas.map((replica) => ({ ...replica, path: directory.path })),
      ),
    );
  });
  return handle;
}

function brokerFigures(broker) {
  return tiles([
    ["State", broker.alive ? badge("alive", "ok") : badge("not reachable", "error")],
    ["Address", h("code", null, `${broker.host}:${broker.port}`)],
    ["Controller", broker.is_controller ? "yes" : "no"],
    ["Rack", broker.rack ?? "–"],
    ["Leaders", count(broker.leaders)],
    ["Replicas", count(broker.replicas)],
    ["Size", bytes(broker.size_bytes)],
  ]);
}

function directoryTable(context) {
  const table = dataTable({
    title: "Log directories",
    key: (directory) => directory.path,
    empty: "The broker does not answer, so its directories are not known.",
    columns: [
      { name: "path", title: "Directory", sort: true, cell: (directory) => h("code", null, directory.path) },
      {
        name: "error",
        title: "State",
        csv: (directory) => directory.error ?? "ok",
        cell: (directory) => (directory.error ? badge(directory.error, "error") : badge("ok", "ok")),
      },
      {
        name: "replicas",
        title: "Replicas",
        right: true,
        sort: true,
        csv: (directory) => directory.replica_count,
        cell: (directory) => count(directory.replica_count),
      },
      {
        name: "size_bytes",
        title: "Logs",
        right: true,
        sort: true,
        cell: (directory) => bytes(directory.size_bytes),
      },
      {
        name: "usable_bytes",
        title: "Free on the disk",
        right: true,
        sort: true,
        cell: (directory) => bytes(directory.usable_bytes),
      },
      {
        name: "total_bytes",
        title: "Disk",
        right: true,
        wide: true,
        cell: (directory) => bytes(directory.total_bytes),
      },
      { name: "used", title: "Used", csv: usedShare, cell: (directory) => meter(usedShare(directory)) },
    ],
  });
  context.root.append(table.element);
  return table;
}

function replicaTable(context) {
  const table = dataTable({
    title: "Replicas",
    key: ({ topic, partition, is_future }) => `${topic}-${partition}-${is_future}`,
    empty: "The broker has no replicas.",
    columns: [
      {
        name: "topic",
        title: "Partition",
        sort: true,
        csv: ({ topic, partition }) => `${topic}-${partition}`,
        cell: ({ topic, partition, is_future }) => [
          h("a", { href: to.topic(topic, "replication") }, `${topic}-${partition}`),
          is_future ? [" ", badge("moving here", "accent")] : null,
        ],
      },
      {
        name: "size_bytes",
        title: "Size",
        right: true,
        sort: true,
        cell: ({ size_bytes }) => bytes(size_bytes),
      },
      {
        name: "lag",
        title: "Lag",
        right: true,
        sort: true,
        cell: ({ lag }) => h("b", { class: lag > 0 ? "lagging" : "" }, count(lag)),
      },
      {
        name: "path",
        title: "Directory",
        wide: true,
        cell: ({ path: directory }) => h("code", null, directory),
      },
    ],
  });
  context.root.append(table.element);
  return table;
}

function usedShare({ total_bytes, usable_bytes }) {
  return total_bytes > 0 && usable_bytes !== null ? Math.round((1 - usable_bytes / total_bytes) * 100) : null;
}

function meter(percent) {
  if (percent === null) {
    return "–";
  }
  const bar = h(
    "span",
    { class: `meter ${percent > 90 ? "error" : percent > 75 ? "warn" : ""}`, title: `${percent} % used` },
    h("i"),
  );
  bar.firstChild.style.width = `${percent}%`;
  return [bar, ` ${percent} %`];
}
