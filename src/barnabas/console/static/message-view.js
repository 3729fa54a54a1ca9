// How messages are shown: a row with a short form, and below it, when opened, everything about the message.

import { actionButton } from "./action.js";
import { h } from "./dom.js";
import { bytes, count, text, time } from "./format.js";
import { textBlock } from "./json.js";
import { copyButton } from "./notices.js";
import { badge } from "./page.js";
import { to } from "./router.js";

const SHORT = 240;
const SHOWN_MAX = 100000;

export function messageName({ partition, offset }) {
  return `${partition}-${offset}`;
}

function shortened(value, length) {
  const line = value.replace(/\s+/g, " ");
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

/** One line for a key or a value; nothing, null and empty are different things. */
function brief(part, length) {
  if (!part || part.is_null || part.text === null || part.text === undefined) {
    return h("span", { class: "muted" }, "null");
  }
  return part.text === ""
    ? h("span", { class: "muted" }, "empty")
    : h("span", { class: "mono" }, shortened(part.text, length));
}

function messageBadges({ transaction, control, headers }) {
  const kinds = { open: "warn", committed: "ok", aborted: "error" };
  return [
    control ? badge(`${control} marker`, "accent") : null,
    !control && transaction && transaction !== "none"
      ? badge(`transaction ${transaction}`, kinds[transaction] ?? "")
      : null,
    headers?.length ? badge(`${headers.length} header${headers.length === 1 ? "" : "s"}`) : null,
  ];
}

export function messageCells(message) {
  return [
    h("td", { class: "right" }, count(message.partition)),
    h("td", { class: "right" }, count(message.offset)),
    h("td", { class: "nowrap" }, time(message.time_ms)),
    h(
      "td",
      { class: "key" },
      h("div", { class: "two-lines" }, message.control ? "" : brief(message.key, 60)),
    ),
    h(
      "td",
      { class: "value" },
      h(
        "div",
        { class: "two-lines" },
        messageBadges(message),
        message.control ? null : brief(message.value, SHORT),
      ),
    ),
  ];
}

function part(name, value) {
  if (!value || value.is_null || value.text === null || value.text === undefined) {
    return h("section", null, h("h3", null, name), h("p", { class: "muted" }, "null"));
  }
  const shown = value.text.slice(0, SHOWN_MAX);
  return h(
    "section",
    null,
    h(
      "h3",
      null,
      name,
      " ",
      badge(value.as ?? "text"),
      badge(bytes(value.size)),
      copyButton(name, value.text),
    ),
    textBlock(shown, value.as),
    value.problem ? h("p", { class: "error-text" }, value.problem) : null,
    shown.length < value.text.length
      ? h("p", { class: "muted" }, `The first ${count(SHOWN_MAX)} characters; copy or download for all.`)
      : null,
  );
}

function headerTable(headers) {
  if (!headers?.length) {
    return null;
  }
  return h(
    "section",
    null,
    h("h3", null, "Headers"),
    h(
      "table",
      { class: "plain" },
      h(
        "tbody",
        null,
        headers.map((header) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, header.name),
            h("td", { class: "mono" }, header.text ?? (header.hex ? `0x${header.hex}` : "null")),
          ),
        ),
      ),
    ),
  );
}

function facts(topic, message) {
  const rows = [
    ["Partition", count(message.partition)],
    ["Offset", count(message.offset)],
    [message.time_type === "append" ? "Appended" : "Created", time(message.time_ms)],
    ["Size", bytes(message.size)],
    ["Compression", text(message.compression)],
    [
      "Producer",
      message.producer_id >= 0 && message.producer_id !== null
        ? `${message.producer_id}, epoch ${text(message.producer_epoch)}`
        : "–",
    ],
    ["Sequence", message.sequence >= 0 ? text(message.sequence) : "–"],
    ["Transaction", text(message.transaction)],
  ];
  return h(
    "dl",
    { class: "facts" },
    rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

/** Everything about a message. `again` opens the dialog that produces it once more. */
export function messageDetail(topic, message, again) {
  const explained = {
    commit: "A control record: here the transaction of this producer was committed. Consumers do not see it.",
    abort: "A control record: here the transaction of this producer was aborted. Consumers do not see it.",
  }[message.control];
  return h(
    "div",
    { class: "message-detail" },
    h(
      "div",
      { class: "row-actions" },
      h("a", { class: "button small", href: to.message(topic, message.partition, message.offset) }, "Link"),
      copyButton("Message", JSON.stringify(message, null, 2), "Copy JSON"),
      message.control ? null : actionButton("Produce again…", again, { small: true }),
    ),
    explained ? h("p", null, explained) : null,
    facts(topic, message),
    message.control
      ? null
      : [part("Key", message.key), part("Value", message.value), headerTable(message.headers)],
  );
}
