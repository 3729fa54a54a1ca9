// ACLs, users and quotas.

import { actionButton, openAction } from "./action.js";
import { h } from "./dom.js";
import { text } from "./format.js";
import { serverList } from "./list.js";
import { badge } from "./page.js";

const RESOURCES = ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"];
const OPERATIONS = [
  "READ",
  "WRITE",
  "CREATE",
  "DELETE",
  "ALTER",
  "DESCRIBE",
  "CLUSTER_ACTION",
  "DESCRIBE_CONFIGS",
  "ALTER_CONFIGS",
  "IDEMPOTENT_WRITE",
  "CREATE_TOKENS",
  "DESCRIBE_TOKENS",
  "ALL",
];
const same = (names) => names.map((name) => [name, name.toLowerCase().replaceAll("_", " ")]);

/** A page with one list that the server searches and pages. */
function securityPage(context, { title, actions, ...spec }) {
  context.head(title, { actions });
  return serverList(context, { label: title, search: `Search ${title}`, refresh_ms: 10000, ...spec });
}

export function aclsPage(context) {
  const done = () => context.refresh();
  return securityPage(context, {
    title: "ACLs",
    url: "/api/acls",
    actions: [actionButton("Add ACL", () => addAcl(done), { primary: true })],
    key: (acl) => acl.text,
    empty: "There are no ACLs.",
    columns: [
      { name: "principal", title: "Principal", sort: true },
      {
        name: "permission",
        title: "Permission",
        sort: true,
        cell: ({ permission }) =>
          badge(permission.toLowerCase(), permission.toUpperCase() === "DENY" ? "error" : "ok"),
      },
      {
        name: "operation",
        title: "Operation",
        sort: true,
        cell: ({ operation }) => operation.toLowerCase().replaceAll("_", " "),
      },
      {
        name: "resource_type",
        title: "Resource",
        sort: true,
        cell: ({ resource_type }) => resource_type.toLowerCase().replaceAll("_", " "),
      },
      {
        name: "resource_name",
        title: "Name",
        sort: true,
        cell: ({ resource_name }) => h("code", null, resource_name),
      },
      {
        name: "pattern_type",
        title: "Pattern",
        wide: true,
        cell: ({ pattern_type }) => pattern_type.toLowerCase(),
      },
      { name: "host", title: "Host", wide: true },
      {
        name: "remove",
        title: "",
        csv: null,
        cell: (acl) => actionButton("Remove", () => removeAcl(acl, done), { danger: true, small: true }),
      },
    ],
  });
}

function addAcl(done) {
  openAction({
    title: "Add ACL",
    verb: "Add",
    fields: [
      { name: "principal", label: "Principal", value: "User:", required: true },
      { name: "permission", label: "Permission", kind: "select", options: same(["ALLOW", "DENY"]) },
      { name: "operation", label: "Operation", kind: "select", options: same(OPERATIONS) },
      { name: "resource_type", label: "Resource", kind: "select", options: same(RESOURCES) },
      { name: "resource_name", label: "Name", value: "*", help: "* with the pattern “literal” means all." },
      { name: "pattern_type", label: "Pattern", kind: "select", options: same(["LITERAL", "PREFIXED"]) },
      { name: "host", label: "Host", value: "*" },
    ],
    request: (values) =>
      /^[^:]+:.+/.test(values.principal)
        ? { method: "POST", url: "/api/acls", body: values }
        : "A principal is a type and a name, such as User:alice.",
    done,
  });
}

function removeAcl({ text: _text, ...binding }, done) {
  openAction({
    title: "Remove ACL",
    text: `${binding.principal} ${binding.permission.toLowerCase()} ${binding.operation.toLowerCase()} on ${binding.resource_type.toLowerCase()} ${binding.resource_name}`,
    verb: "Remove",
    danger: true,
    confirm: binding.principal,
    request: () => ({ method: "DELETE", url: "/api/acls", body: binding }),
    done,
  });
}

export function usersPage(context) {
  const done = () => context.refresh();
  return securityPage(context, {
    title: "Users",
    url: "/api/users",
    actions: [actionButton("Add user", () => setUser("", done), { primary: true })],
    key: (user) => user.name,
    empty: "There are no SCRAM users.",
    columns: [
      { name: "name", title: "User", sort: true },
      {
        name: "mechanisms",
        title: "Mechanisms",
        csv: ({ mechanisms }) => mechanismNames(mechanisms),
        cell: ({ mechanisms }) => mechanismNames(mechanisms),
      },
      {
        name: "change",
        title: "",
        csv: null,
        cell: ({ name, mechanisms }) =>
          h(
            "span",
            { class: "row-actions" },
            actionButton("Set password", () => setUser(name, done), { small: true }),
            actionButton("Delete", () => deleteUser(name, mechanisms, done), { danger: true, small: true }),
          ),
      },
    ],
  });
}

function mechanismNames(mechanisms) {
  return (mechanisms ?? [])
    .map((each) => (typeof each === "string" ? each : `${each.mechanism}, ${each.iterations} iterations`))
    .join("; ");
}

function setUser(name, done) {
  openAction({
    title: name ? `Set the password of ${name}` : "Add user",
    verb: "Set",
    fields: [
      { name: "name", label: "User", value: name, required: true },
      {
        name: "mechanism",
        label: "Mechanism",
        kind: "select",
        options: [
          ["SCRAM-SHA-512", "SCRAM-SHA-512"],
          ["SCRAM-SHA-256", "SCRAM-SHA-256"],
        ],
      },
      { name: "password", label: "Password", kind: "password", required: true },
    ],
    request: (values) =>
      values.name && values.password
        ? { method: "POST", url: "/api/users", body: values }
        : "Give a user and a password.",
    done,
  });
}

function deleteUser(name, mechanisms, done) {
  const names = (mechanisms ?? []).map((each) => (typeof each === "string" ? each : each.mechanism));
  openAction({
    title: `Delete user ${name}`,
    verb: "Delete",
    danger: true,
    confirm: name,
    fields: [
      { name: "mechanism", label: "Mechanism", kind: "select", options: names.map((each) => [each, each]) },
    ],
    request: ({ mechanism }) => ({
      method: "DELETE",
      url: "/api/users",
      body: { name, mechanism, confirm: name },
    }),
    done,
  });
}

const QUOTAS = [
  ["producer_byte_rate", "bytes/s that a client may produce"],
  ["consumer_byte_rate", "bytes/s that a client may fetch"],
  ["request_percentage", "percent of a broker's time"],
  ["controller_mutation_rate", "created and deleted partitions per second"],
];

export function quotasPage(context) {
  const done = () => context.refresh();
  return securityPage(context, {
    title: "Quotas",
    url: "/api/quotas",
    actions: [actionButton("Set quota", () => setQuota({}, done), { primary: true })],
    key: (quota) => quota.text,
    empty: "There are no quotas.",
    columns: [
      ...["user", "client-id", "ip"].map((kind) => ({
        name: kind,
        title: kind,
        sort: true,
        csv: ({ entity }) => entityText(entity, kind),
        cell: ({ entity }) => entityText(entity, kind) || "–",
      })),
      ...QUOTAS.map(([name]) => ({
        name,
        title: name.replaceAll("_", " "),
        right: true,
        csv: ({ values }) => values?.[name] ?? "",
        cell: ({ values }) => text(values?.[name]),
      })),
      {
        name: "change",
        title: "",
        csv: null,
        cell: (quota) => actionButton("Change", () => setQuota(quota, done), { small: true }),
      },
    ],
  });
}

function entityText(entity, kind) {
  const named = entity.find(({ type }) => type === kind);
  return !named ? "" : (named.name ?? "default");
}

function setQuota({ entity = [], values = {} }, done) {
  const kinds = ["user", "client-id", "ip"];
  openAction({
    title: "Set quota",
    verb: "Set",
    fields: [
      ...kinds.map((kind) => ({
        name: kind,
        label: kind,
        value: entityText(entity, kind),
        placeholder: "not named",
        help: kind === "user" ? "“default” means all that have none of their own." : null,
      })),
      ...QUOTAS.map(([name, help]) => ({
        name,
        label: name.replaceAll("_", " "),
        kind: "number",
        min: 0,
        step: "any",
        value: values[name] ?? "",
        help,
      })),
    ],
    request: (given) => {
      const named = kinds.filter((kind) => given[kind].trim());
      if (!named.length) {
        return "Name a user, a client-id or an ip.";
      }
      const changed = QUOTAS.filter(([name]) => given[name] !== String(values[name] ?? ""));
      if (!changed.length) {
        return "Change a value to see the command.";
      }
      const body = {
        entity: named.map((kind) => ({
          type: kind,
          name: given[kind].trim() === "default" ? null : given[kind].trim(),
        })),
        values: Object.fromEntries(
          changed.map(([name]) => [name, given[name] === "" ? null : Number(given[name])]),
        ),
      };
      return { method: "PUT", url: "/api/quotas", body };
    },
    done,
  });
}
