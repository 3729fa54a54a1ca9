// Events of the cluster: elections, changes of in-sync sets, brokers that come and go, moves of partitions.

import { h } from "./dom.js";
import { clock } from "./format.js";
import { badge } from "./page.js";
import { to } from "./router.js";

const KINDS = { isr: "warn", election: "accent", broker: "error", reassignment: "accent" };

export function partitionName({ topic, partition }) {
  return partition === null || partition === undefined ? topic : `${topic}-${partition}`;
}

export function partitionLink(event) {
  return h("a", { href: to.topic(event.topic, "replication") }, partitionName(event));
}

export function eventBadge({ kind }) {
  return badge(kind, KINDS[kind] ?? "");
}

/** The text without the partition's name, which the page shows before it, as a link. */
export function eventText(event) {
  const prefix = `${partitionName(event)}: `;
  return event.topic && event.text.startsWith(prefix) ? event.text.slice(prefix.length) : event.text;
}

export function newestFirst(events) {
  return [...events].sort((one, other) => other.time_ms - one.time_ms);
}

export function eventLine(event) {
  return h(
    "li",
    null,
    h("time", null, clock(event.time_ms)),
    eventBadge(event),
    h("span", null, event.topic ? [partitionLink(event), " "] : null, eventText(event)),
  );
}
