// One group: lag per partition and over time, members and what they have, resetting offsets, deleting.

import { actionButton, openAction } from "./action.js";
import { get, path } from "./api.js";
import { lineChart } from "./chart.js";
import { h, replace } from "./dom.js";
import { count, text, timeField, timeOfField } from "./format.js";
import { stateBadge } from "./page-groups.js";
import { badge, tabs, tiles } from "./page.js";
import { go, to } from "./router.js";
import { dataTable } from "./table.js";

const TABS = [
  ["offsets", "Offsets and lag"],
  ["members", "Members"],
];
const SERIES_SHOWN = 8;

export function groupPage(context) {
  const id = context.params.group;
  const tab = context.params.tab ?? "offsets";
  const url = path("api", "groups", id);
  const state = { group: null };
  const figures = h("div");
  context.head(id, {
    above: h("a", { href: "/groups" }, "Groups"),
    actions: [
      actionButton("Reset offsets", () => state.group && reset(url, state.group, context), { primary: true }),
      actionButton("Delete", () => remove(id, url), { danger: true }),
    ],
  });
  context.root.append(
    figures,
    tabs(
      "Group",
      TABS.map(([name, title]) => [name, title, to.group(id, name === "offsets" ? null : name)]),
      tab,
    ),
  );
  const draw = tab === "members" ? membersTab(context) : offsetsTab(context, url);
  context.poll(4000, async () => {
    state.group = await get(url, null, context.signal);
    replace(figures, groupFigures(state.group));
    draw(state.group);
  });
}

function groupFigures(group) {
  const lag = group.lag ?? group.offsets.reduce((sum, offset) => sum + (offset.lag ?? 0), 0);
  if (group.note) {
    return [
      tiles([
        ["State", stateBadge(group.state)],
        ["Protocol", badge(group.type)],
      ]),
      h("p", { class: "problem" }, group.note),
    ];
  }
  return tiles([
    ["State", stateBadge(group.state)],
    ["Protocol", badge(group.type ?? "–")],
    ["Members", count(group.members.length)],
    ["Partitions", count(group.offsets.length)],
    ["Lag", count(lag), lag > 0 ? "warn" : ""],
    [
      "Coordinator",
      group.coordinator === null || group.coordinator === undefined
        ? "–"
        : h("a", { href: to.broker(group.coordinator) }, String(group.coordinator)),
    ],
  ]);
}

function offsetsTab(context, url) {
  const chart = lineChart({ title: "Lag", format: count });
  const table = dataTable({
    title: "Offsets",
    key: ({ topic, partition }) => `${topic}-${partition}`,
    empty: "The group has committed no offsets.",
    columns: [
      {
        name: "topic",
        title: "Topic",
        sort: true,
        cell: ({ topic }) => h("a", { href: to.topic(topic) }, topic),
      },
      { name: "partition", title: "Partition", right: true, sort: true },
      {
        name: "committed",
        title: "Committed",
        right: true,
        sort: true,
        cell: (row) =>
          row.committed === null || row.committed < 0
            ? "–"
            : h("a", { href: to.message(row.topic, row.partition, row.committed) }, count(row.committed)),
      },
      { name: "end", title: "End", right: true, sort: true, cell: ({ end }) => count(end) },
      {
        name: "lag",
        title: "Lag",
        right: true,
        sort: true,
        cell: ({ lag }) => h("b", { class: lag > 0 ? "lagging" : "" }, count(lag)),
      },
      {
        name: "member",
        title: "Member",
        wide: true,
        csv: ({ member }) => member ?? "",
        cell: ({ member }) => h("span", { class: "mono clip" }, text(member)),
      },
      {
        name: "metadata",
        title: "Metadata",
        wide: true,
        csv: ({ metadata }) => metadata ?? "",
        cell: ({ metadata }) => text(metadata),
      },
    ],
  });
  context.root.append(chart.element, table.element);
  context.poll(5000, async () => {
    const { series, total } = await get(`${url}/lag`, null, context.signal);
    const largest = [...series]
      .sort((one, other) => (other.points.at(-1)?.[1] ?? 0) - (one.points.at(-1)?.[1] ?? 0))
      .slice(0, SERIES_SHOWN - 1);
    const lines = largest.map(({ topic, partition, points }) => ({ name: `${topic}-${partition}`, points }));
    chart.draw(
      series.length > 1
        ? [{ name: "all partitions", points: total }, ...lines]
        : [{ name: "lag", points: total }],
    );
  });
  return (group) => table.update(group.offsets);
}

function membersTab(context) {
  const table = dataTable({
    title: "Members",
    key: (member) => member.id,
    empty: "The group has no members now.",
    columns: [
      { name: "client_id", title: "Client", sort: true, cell: (member) => text(member.client_id) },
      {
        name: "id",
        title: "Member",
        sort: true,
        cell: (member) => h("span", { class: "mono clip" }, member.id),
      },
      { name: "host", title: "Host", cell: (member) => text(member.host) },
      {
        name: "instance_id",
        title: "Instance",
        wide: true,
        csv: (member) => member.instance_id ?? "",
        cell: (member) => text(member.instance_id),
      },
      {
        name: "assignment",
        title: "Partitions",
        csv: ({ assignment }) => assignment.map(({ topic, partition }) => `${topic}-${partition}`).join(" "),
        cell: assigned,
      },
    ],
  });
  context.root.append(table.element);
  return (group) => table.update(group.members);
}

function assigned({ assignment }) {
  const topics = new Map();
  for (const { topic, partition } of assignment) {
    topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  }
  if (!topics.size) {
    return "–";
  }
  return [...topics].map(([topic, partitions]) =>
    h(
      "div",
      null,
      h("a", { href: to.topic(topic) }, topic),
      ": ",
      partitions.sort((a, b) => a - b).join(", "),
    ),
  );
}

const WAYS = [
  ["earliest", "the earliest message"],
  ["latest", "the end"],
  ["offset", "an offset"],
  ["time", "a time"],
  ["shift", "forward or back by a number"],
  ["duration", "some minutes ago"],
];

function resetValue(to_, values) {
  const found = {
    offset: () => Number(values.offset),
    time: () => timeOfField(values.time),
    shift: () => Number(values.shift),
    duration: () => Number(values.duration) * 60000,
  }[to_]?.();
  return found === undefined ? null : found;
}

function reset(url, group, context) {
  const topics = [...new Set(group.offsets.map(({ topic }) => topic))];
  openAction({
    title: `Reset offsets of ${group.id}`,
    text: group.members.length
      ? "The group has members. Stop them first: they would commit their own offsets again."
      : null,
    verb: "Reset",
    danger: true,
    wide: true,
    fields: [
      {
        name: "topic",
        label: "Topic",
        kind: "select",
        options: [["", "all topics"], ...topics.map((topic) => [topic, topic])],
      },
      {
        name: "partitions",
        label: "Partitions",
        placeholder: "all",
        help: "Numbers with commas; for one topic.",
        shown: ({ topic }) => topic !== "",
      },
      { name: "to", label: "To", kind: "select", options: WAYS },
      {
        name: "offset",
        label: "Offset",
        kind: "number",
        min: 0,
        value: 0,
        shown: (values) => values.to === "offset",
      },
      {
        name: "time",
        label: "Time",
        kind: "datetime-local",
        step: 1,
        value: timeField(Date.now()),
        shown: (values) => values.to === "time",
      },
      { name: "shift", label: "By", kind: "number", value: -10, shown: (values) => values.to === "shift" },
      {
        name: "duration",
        label: "Minutes",
        kind: "number",
        min: 0,
        value: 60,
        shown: (values) => values.to === "duration",
      },
    ],
    request: (values) => resetRequest(url, values),
    preview: (preview) => resetRows(preview.rows ?? preview),
    done: () => context.refresh(),
  });
}

function resetRequest(url, values) {
  const numbers = values.partitions
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean)
    .map(Number);
  if (numbers.some((number) => !Number.isInteger(number) || number < 0)) {
    return "Partitions are numbers with commas between them.";
  }
  const some = values.topic && numbers.length;
  const body = {
    topics: some || !values.topic ? null : [values.topic],
    partitions: some ? numbers.map((partition) => ({ topic: values.topic, partition })) : null,
    to: values.to,
    value: resetValue(values.to, values),
  };
  return { method: "POST", url: `${url}/reset`, body };
}

function resetRows(rows) {
  if (!Array.isArray(rows)) {
    return null;
  }
  const table = dataTable({
    title: "What would change",
    key: ({ topic, partition }) => `${topic}-${partition}`,
    empty: "Nothing would change.",
    columns: [
      { name: "topic", title: "Topic" },
      { name: "partition", title: "Partition", right: true },
      { name: "from", title: "Now", right: true, cell: (row) => count(row.from) },
      { name: "to", title: "Then", right: true, cell: (row) => count(row.to) },
      {
        name: "change",
        title: "Change",
        right: true,
        csv: (row) => row.to - (row.from ?? 0),
        cell: (row) => signed(row.to - (row.from ?? 0)),
      },
    ],
  });
  table.update(rows);
  return table.element;
}

function signed(number) {
  return number > 0 ? `+${count(number)}` : count(number);
}

function remove(id, url) {
  openAction({
    title: `Delete group ${id}`,
    text: "The group's offsets are deleted. A consumer of this group then begins where auto.offset.reset says.",
    verb: "Delete",
    danger: true,
    confirm: id,
    request: () => ({ method: "DELETE", url, body: { confirm: id } }),
    done: () => go("/groups"),
  });
}
