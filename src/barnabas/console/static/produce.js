// The dialog that produces a message, also again from one that is there.

import { openAction } from "./action.js";
import { path } from "./api.js";
import { h } from "./dom.js";
import { to } from "./router.js";

const FORMS = [
  ["text", "text"],
  ["json", "JSON"],
  ["hex", "hex"],
  ["null", "null"],
];

/** How a shown key or value is given back to the server. */
function formOf(part) {
  if (!part || part.is_null || part.text === null || part.text === undefined) {
    return "null";
  }
  return part.as === "hex" || part.as === "json" ? part.as : "text";
}

/** Lines "name: text"; null if a line is not of that form. */
function headersOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const found = lines.map((line) => line.match(/^([^:]+):\s?(.*)$/));
  return found.every(Boolean) ? found.map(([, name, value]) => ({ name: name.trim(), text: value })) : null;
}

function fieldsFor(partitions, message) {
  const choices = [
    ["", "by key"],
    ...Array.from({ length: partitions }, (_, index) => [index, String(index)]),
  ];
  const headers = (message?.headers ?? []).map(({ name, text }) => `${name}: ${text ?? ""}`).join("\n");
  return [
    { name: "partition", label: "Partition", kind: "select", options: choices, value: "" },
    {
      name: "keyAs",
      label: "Key as",
      kind: "select",
      options: FORMS,
      value: message ? formOf(message.key) : "null",
    },
    {
      name: "key",
      label: "Key",
      kind: "area",
      rows: 2,
      value: message?.key?.text ?? "",
      shown: ({ keyAs }) => keyAs !== "null",
    },
    {
      name: "valueAs",
      label: "Value as",
      kind: "select",
      options: FORMS,
      value: message ? formOf(message.value) : "text",
    },
    {
      name: "value",
      label: "Value",
      kind: "area",
      rows: 8,
      value: message?.value?.text ?? "",
      shown: ({ valueAs }) => valueAs !== "null",
    },
    {
      name: "headers",
      label: "Headers",
      kind: "area",
      rows: 2,
      value: headers,
      placeholder: "trace: 7f3a",
      help: "One name: text per line.",
    },
  ];
}

export function produceAction(topic, partitions, message, done) {
  openAction({
    title: message ? `Produce again to ${topic}` : `Produce to ${topic}`,
    verb: "Produce",
    wide: true,
    fields: fieldsFor(partitions, message),
    request: (values) => {
      const headers = headersOf(values.headers);
      if (headers === null) {
        return "A header is a line name: text.";
      }
      const body = {
        partition: values.partition === "" ? null : Number(values.partition),
        key: { as: values.keyAs, text: values.keyAs === "null" ? null : values.key },
        value: { as: values.valueAs, text: values.valueAs === "null" ? null : values.value },
        headers,
      };
      return { method: "POST", url: path("api", "topics", topic, "messages"), body };
    },
    result: ({ partition, offset }) =>
      h(
        "p",
        null,
        "Written to partition ",
        String(partition),
        " at offset ",
        h("a", { href: to.message(topic, partition, offset) }, String(offset)),
        ".",
      ),
    done,
  });
}
