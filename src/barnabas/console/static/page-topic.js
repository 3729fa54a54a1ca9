// One topic: partitions, messages, settings, groups, replication; and the actions on it.

import { actionButton, openAction } from "./action.js";
import { get, path } from "./api.js";
import { configTable } from "./configs.js";
import { h, replace } from "./dom.js";
import { bytes, count, rate } from "./format.js";
import { groupColumns } from "./page-groups.js";
import { healthOf } from "./page-topics.js";
import { badge, tabs, tiles } from "./page.js";
import { messagesTab } from "./messages.js";
import { produceAction } from "./produce.js";
import { topicReplication } from "./replicas.js";
import { go, to } from "./router.js";
import { dataTable } from "./table.js";

const TABS = [
  ["partitions", "Partitions"],
  ["messages", "Messages"],
  ["configs", "Configuration"],
  ["groups", "Groups"],
  ["replication", "Replication"],
];

export function topicPage(context) {
  const name = context.params.topic;
  const tab = context.params.tab ?? "partitions";
  const url = path("api", "topics", name);
  const figures = h("div");
  const state = { partitions: [] };
  context.head(name, {
    above: h("a", { href: "/topics" }, "Topics"),
    actions: [
      actionButton(
        "Produce",
        () => produceAction(name, state.partitions.length, null, () => context.refresh()),
        { primary: true },
      ),
      actionButton("Add partitions", () => grow(name, url, state.partitions.length, context)),
      actionButton("Empty", () => empty(name, url, context)),
      actionButton("Delete", () => remove(name, url), { danger: true }),
    ],
  });
  const entries = TABS.map(([id, title]) => [id, title, to.topic(name, id === "partitions" ? null : id)]);
  context.root.append(figures, tabs("Topic", entries, tab));
  const draw = {
    partitions: partitionsTab,
    messages: messagesTab,
    configs: configsTab,
    groups: groupsTab,
    replication: topicReplication,
  }[tab];
  const handle = draw?.(context, name, url, state);
  context.poll(5000, async () => {
    const topic = await get(url, null, context.signal);
    state.partitions = topic.partitions;
    replace(figures, topicFigures(topic));
    state.drawPartitions?.(topic.partitions);
  });
  return handle;
}

function topicFigures(topic) {
  const partitions = topic.partitions.length;
  return tiles([
    ["Partitions", count(partitions)],
    ["Replicas", count(topic.replication)],
    ["Messages", count(topic.messages)],
    ["Rate", rate(topic.messages_per_second)],
    ["Size", bytes(topic.size_bytes)],
    ["Cleanup", topic.cleanup_policy ?? "–"],
    ["Health", healthOf(topic)],
  ]);
}

/** Replicas as chips: the leader first in weight, those that are not in sync marked. */
export function replicaChips({ replicas, isr, leader }) {
  return h(
    "span",
    { class: "chips" },
    replicas.map((broker) => {
      const kind = broker === leader ? "leader" : isr.includes(broker) ? "in" : "out";
      const hint = { leader: "leader", in: "in sync", out: "not in sync" }[kind];
      return h(
        "span",
        { class: `chip ${kind}`, title: `broker ${broker}: ${hint}` },
        String(broker),
        kind === "out" ? h("span", { class: "sr" }, " not in sync") : null,
      );
    }),
  );
}

function partitionsTab(context, name, url, state) {
  const table = dataTable({
    title: "Partitions",
    key: (partition) => partition.index,
    columns: [
      {
        name: "index",
        title: "Partition",
        sort: true,
        cell: ({ index }) =>
          h("a", { href: `${to.topic(name, "messages")}?partition=${index}` }, String(index)),
      },
      {
        name: "leader",
        title: "Leader",
        right: true,
        sort: true,
        cell: ({ leader }) => (leader === null || leader < 0 ? badge("none", "error") : String(leader)),
      },
      {
        name: "leader_epoch",
        title: "Epoch",
        right: true,
        wide: true,
        cell: ({ leader_epoch }) => count(leader_epoch),
      },
      { name: "replicas", title: "Replicas", csv: ({ replicas }) => replicas.join(" "), cell: replicaChips },
      {
        name: "isr",
        title: "ISR",
        wide: true,
        csv: ({ isr }) => isr.join(" "),
        cell: ({ isr }) => isr.join(", "),
      },
      {
        name: "elr",
        title: "ELR",
        wide: true,
        csv: ({ elr }) => (elr ?? []).join(" "),
        cell: ({ elr }) => (elr ?? []).join(", ") || "–",
      },
      {
        name: "start",
        title: "Start",
        right: true,
        sort: true,
        wide: true,
        cell: ({ start }) => count(start),
      },
      { name: "end", title: "End", right: true, sort: true, cell: ({ end }) => count(end) },
      {
        name: "messages",
        title: "Messages",
        right: true,
        sort: true,
        csv: ({ start, end }) => messagesIn(start, end),
        cell: ({ start, end }) => count(messagesIn(start, end)),
      },
      {
        name: "size_bytes",
        title: "Size",
        right: true,
        sort: true,
        cell: ({ size_bytes }) => bytes(size_bytes),
      },
    ],
  });
  context.root.append(table.element);
  state.drawPartitions = (partitions) => table.update(partitions);
}

function messagesIn(start, end) {
  return start === null || end === null ? null : end - start;
}

function configsTab(context, name, url) {
  configTable(context, `${url}/configs`, `topic ${name}`);
}

function groupsTab(context, name, url) {
  const table = dataTable({
    title: "Groups with offsets here",
    columns: groupColumns(),
    key: (group) => group.id,
    link: (group) => to.group(group.id),
    empty: "No group has committed offsets for this topic.",
  });
  context.root.append(table.element);
  context.poll(5000, async () => table.update((await get(`${url}/groups`, null, context.signal)).items));
}

function grow(name, url, now, context) {
  openAction({
    title: `Add partitions to ${name}`,
    text: "Keys then go to other partitions than before. Partitions cannot be removed again.",
    verb: "Add",
    fields: [{ name: "count", label: "Partitions in total", kind: "number", min: now + 1, value: now + 1 }],
    request: ({ count: total }) =>
      Number(total) > now
        ? { method: "POST", url: `${url}/partitions`, body: { count: Number(total) } }
        : `The topic has ${now} already.`,
    done: () => context.refresh(),
  });
}

function empty(name, url, context) {
  openAction({
    title: `Empty ${name}`,
    text: "All messages that are in the topic now are deleted. New ones keep counting offsets from where they are.",
    verb: "Empty",
    danger: true,
    confirm: name,
    request: () => ({ method: "POST", url: `${url}/empty`, body: { confirm: name } }),
    done: () => context.refresh(),
  });
}

function remove(name, url) {
  openAction({
    title: `Delete ${name}`,
    text: "The topic, its messages and its settings are deleted.",
    verb: "Delete",
    danger: true,
    confirm: name,
    request: () => ({ method: "DELETE", url, body: { confirm: name } }),
    done: () => go("/topics"),
  });
}
