// Addresses. Everything that a page shows follows from its path and query, so every view can be linked to.

import { path } from "./api.js";

const routes = [];

/** route("/topics/:topic/:tab?", page): ":name" takes one part, "?" at the end makes it optional. */
export function route(pattern, page) {
  const parts = pattern
    .split("/")
    .filter(Boolean)
    .map((part) => ({
      name: part.startsWith(":") ? part.slice(1).replace("?", "") : null,
      optional: part.endsWith("?"),
      text: part,
    }));
  routes.push({ pattern, parts, page });
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a % that somebody typed
  }
}

function match(parts, given) {
  const params = {};
  for (let index = 0; index < Math.max(parts.length, given.length); index += 1) {
    const part = parts[index];
    if (part === undefined || (given[index] === undefined && !part.optional)) {
      return null;
    }
    if (part.name) {
      params[part.name] = given[index] === undefined ? null : decode(given[index]);
    } else if (part.text !== given[index]) {
      return null;
    }
  }
  return params;
}

export function find(pathname) {
  const given = pathname.split("/").filter(Boolean);
  for (const { pattern, parts, page } of routes) {
    const params = match(parts, given);
    if (params) {
      return { pattern, params, page };
    }
  }
  return null;
}

export function currentQuery() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

let render = () => undefined;

export function onNavigate(call) {
  render = call;
  window.addEventListener("popstate", () => render());
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || link.target || link.hasAttribute("download") || event.defaultPrevented) {
      return;
    }
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
      return;
    }
    const url = new URL(link.href);
    if (url.origin === location.origin && !url.pathname.startsWith("/api/")) {
      event.preventDefault();
      go(url.pathname + url.search);
    }
  });
}

export function go(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  render();
}

/** Changes some names of the query; null and "" remove a name. */
export function changeQuery(changes, { replace = false } = {}) {
  const now = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") {
      now.delete(name);
    } else {
      now.set(name, value);
    }
  }
  const text = now.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace });
}

/** The address of a topic, a group and so on, with their names encoded. */
export const to = {
  topic: (name, tab) => (tab ? path("topics", name, tab) : path("topics", name)),
  message: (topic, partition, offset) =>
    `${path("topics", topic, "messages")}?partition=${partition}&from=offset&offset=${offset}&open=${partition}-${offset}`,
  group: (name, tab) => (tab ? path("groups", name, tab) : path("groups", name)),
  broker: (id, tab) => (tab ? path("brokers", id, tab) : path("brokers", id)),
};
