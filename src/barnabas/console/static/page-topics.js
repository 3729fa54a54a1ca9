// The list of topics, and the dialog that creates one.

import { actionButton, openAction } from "./action.js";
import { h } from "./dom.js";
import { bytes, count, rate } from "./format.js";
import { serverList } from "./list.js";
import { badge } from "./page.js";
import { changeQuery, currentQuery, go, to } from "./router.js";

const COLUMNS = [
  {
    name: "name",
    title: "Topic",
    sort: true,
    cell: (topic) => [
      h("a", { href: to.topic(topic.name) }, topic.name),
      topic.internal ? [" ", badge("internal")] : null,
    ],
  },
  {
    name: "partitions",
    title: "Partitions",
    right: true,
    sort: true,
    cell: (topic) => count(topic.partitions),
  },
  {
    name: "replication",
    title: "Replicas",
    right: true,
    sort: true,
    wide: true,
    cell: (topic) => count(topic.replication),
  },
  { name: "messages", title: "Messages", right: true, sort: true, cell: (topic) => count(topic.messages) },
  {
    name: "messages_per_second",
    title: "Rate",
    right: true,
    sort: true,
    cell: (topic) => rate(topic.messages_per_second),
  },
  { name: "size_bytes", title: "Size", right: true, sort: true, cell: (topic) => bytes(topic.size_bytes) },
  { name: "cleanup_policy", title: "Cleanup", wide: true, cell: (topic) => topic.cleanup_policy ?? "–" },
  {
    name: "under_replicated",
    title: "Health",
    sort: true,
    csv: (topic) => `${topic.offline} offline, ${topic.under_replicated} under-replicated`,
    cell: (topic) => healthOf(topic),
  },
];

const PROBLEMS = [
  ["", "all topics"],
  ["under_replicated", "under-replicated"],
  ["offline", "offline"],
  ["under_min_isr", "under min ISR"],
  ["at_min_isr", "at min ISR"],
];

export function healthOf({ offline, under_replicated }) {
  return [
    offline ? badge(`${offline} offline`, "error") : null,
    under_replicated ? badge(`${under_replicated} under-replicated`, "warn") : null,
    offline || under_replicated ? null : badge("ok", "ok"),
  ];
}

export function topicsPage(context) {
  context.head("Topics", { actions: [actionButton("Create topic", createTopic, { primary: true })] });
  const internal = h("input", { type: "checkbox", checked: currentQuery().internal === "true" });
  internal.addEventListener("change", () =>
    changeQuery({ internal: internal.checked ? "true" : null, page: null }),
  );
  const problem = h(
    "select",
    { "aria-label": "Problem" },
    PROBLEMS.map(([value, label]) =>
      h("option", { value, selected: value === (currentQuery().problem ?? "") }, label),
    ),
  );
  problem.addEventListener("change", () => changeQuery({ problem: problem.value, page: null }));
  return serverList(context, {
    url: "/api/topics",
    label: "Topics",
    search: "Search topics",
    sort: "name",
    order: "asc",
    columns: COLUMNS,
    key: (topic) => topic.name,
    link: (topic) => to.topic(topic.name),
    params: (query) => ({ internal: query.internal, problem: query.problem }),
    toolbar: [problem, h("label", { class: "inline" }, internal, "internal topics")],
    empty: "No topics match.",
  });
}

/** Lines "key=value" as an object, or null if a line is not of that form. */
function configsOf(text) {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const pairs = lines.map((line) => line.split(/=(.*)/s));
  return pairs.every((pair) => pair.length >= 2 && pair[0])
    ? Object.fromEntries(pairs.map(([key, value]) => [key.trim(), value.trim()]))
    : null;
}

function createTopic() {
  let name = "";
  openAction({
    title: "Create topic",
    verb: "Create",
    fields: [
      {
        name: "name",
        label: "Name",
        required: true,
        help: "Letters, digits, dot, underscore and hyphen; at most 249.",
      },
      {
        name: "partitions",
        label: "Partitions",
        kind: "number",
        min: 1,
        value: "",
        placeholder: "the broker's default",
      },
      {
        name: "replication",
        label: "Replicas",
        kind: "number",
        min: 1,
        value: "",
        placeholder: "the broker's default",
      },
      {
        name: "configs",
        label: "Settings",
        kind: "area",
        rows: 3,
        placeholder: "cleanup.policy=compact\nretention.ms=86400000",
        help: "One key=value per line.",
      },
    ],
    request: (values) => {
      name = values.name.trim();
      const configs = configsOf(values.configs);
      if (!name) {
        return "Give a name to see the command.";
      }
      if (configs === null) {
        return "A setting is a line key=value.";
      }
      const numbers = ["partitions", "replication"]
        .filter((field) => values[field] !== "")
        .map((field) => [field, Number(values[field])]);
      return { method: "POST", url: "/api/topics", body: { name, configs, ...Object.fromEntries(numbers) } };
    },
    done: () => go(to.topic(name)),
  });
}
