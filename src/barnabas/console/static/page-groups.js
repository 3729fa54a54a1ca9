// The list of groups: of both protocols, and of types that are only listed.

import { h } from "./dom.js";
import { count } from "./format.js";
import { serverList } from "./list.js";
import { badge } from "./page.js";
import { to } from "./router.js";

const STATES = { stable: "ok", empty: "", dead: "error" };

export function stateBadge(state) {
  const name = String(state ?? "unknown");
  return badge(name, STATES[name.toLowerCase()] ?? "warn");
}

export function groupColumns() {
  return [
    {
      name: "id",
      title: "Group",
      sort: true,
      cell: (group) => h("a", { href: to.group(group.id) }, group.id),
    },
    { name: "type", title: "Protocol", sort: true, wide: true, cell: (group) => group.type ?? "–" },
    { name: "state", title: "State", sort: true, cell: (group) => stateBadge(group.state) },
    {
      name: "members",
      title: "Members",
      right: true,
      sort: true,
      csv: (group) => amount(group.members),
      cell: (group) => count(amount(group.members)),
    },
    {
      name: "topics",
      title: "Topics",
      right: true,
      wide: true,
      csv: (group) => amount(group.topics),
      cell: (group) => count(amount(group.topics)),
    },
    {
      name: "lag",
      title: "Lag",
      right: true,
      sort: true,
      cell: (group) => h("b", { class: group.lag > 0 ? "lagging" : "" }, count(group.lag)),
    },
    {
      name: "coordinator",
      title: "Coordinator",
      right: true,
      wide: true,
      cell: (group) => count(group.coordinator),
    },
  ];
}

function amount(value) {
  return Array.isArray(value) ? value.length : value;
}

export function groupsPage(context) {
  context.head("Groups");
  return serverList(context, {
    url: "/api/groups",
    label: "Groups",
    search: "Search groups",
    sort: "id",
    order: "asc",
    columns: groupColumns(),
    key: (group) => group.id,
    link: (group) => to.group(group.id),
    empty: "No groups match.",
  });
}
