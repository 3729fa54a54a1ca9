// The form above the messages. Its state is the address: "Read" and "Live tail" write it, going back restores it.

import { freshId, h } from "./dom.js";
import { timeField, timeOfField } from "./format.js";
import { changeQuery } from "./router.js";

const FROM = [
  ["end", "newest"],
  ["beginning", "beginning"],
  ["offset", "offset"],
  ["time", "time"],
];
const FORMS = [
  ["", "auto"],
  ["text", "text"],
  ["json", "JSON"],
  ["hex", "hex"],
  ["avro", "Avro"],
  ["number", "number"],
];
const ISOLATION = [
  ["", "all (read uncommitted)"],
  ["committed", "committed only"],
];
const FILTERS = [
  ["text", "Anywhere", "text in key, value or header"],
  ["key", "Key", "contains"],
  ["value", "Value", "contains"],
  ["header", "Header", "name or name=text"],
  ["regex", "Regular expression", "^order-[0-9]+"],
  ["json_path", "JSON path", '$.state == "paid"'],
];

function labelled(label, control, kind = "") {
  const id = freshId("filter");
  control.id = id;
  return h("div", { class: `field ${kind}` }, h("label", { for: id }, label), control);
}

const select = (name, options) =>
  h(
    "select",
    { name },
    options.map(([value, text]) => h("option", { value }, text)),
  );
const input = (name, type, more) =>
  h("input", { name, type, autocomplete: "off", spellcheck: "false", ...more });

export function filterForm() {
  const from = select("from", FROM);
  const offset = input("offset", "number", { min: 0 });
  const at = input("time", "datetime-local", { step: 1 });
  const partition = input("partition", "text", {
    placeholder: "all",
    size: 6,
    title: "all, or numbers with commas",
  });
  const limit = select("limit", [
    ["", "50"],
    ["100", "100"],
    ["200", "200"],
    ["500", "500"],
  ]);
  const texts = FILTERS.map(([name, , placeholder]) =>
    input(name, name === "text" ? "search" : "text", { placeholder }),
  );
  const keyAs = select("key_as", FORMS);
  const valueAs = select("value_as", FORMS);
  const schema = h("textarea", {
    name: "schema",
    rows: 3,
    spellcheck: "false",
    placeholder: '{"type": "record", ...}',
  });
  const isolation = select("isolation", ISOLATION);
  const control = input("control", "checkbox");
  const offsetField = labelled("Offset", offset);
  const timeFieldElement = labelled("Time", at);
  const schemaField = labelled("Avro schema", schema, "full");
  const controls = [from, offset, partition, limit, ...texts, keyAs, valueAs, schema, isolation];

  function showFields() {
    offsetField.hidden = from.value !== "offset";
    timeFieldElement.hidden = from.value !== "time";
    schemaField.hidden = keyAs.value !== "avro" && valueAs.value !== "avro";
  }

  function values() {
    const found = Object.fromEntries(controls.map((each) => [each.name, each.value.trim()]));
    found.from = from.value === "end" ? "" : from.value;
    found.offset = from.value === "offset" ? offset.value || "0" : "";
    found.time_ms = from.value === "time" ? timeOfField(at.value) : "";
    found.control = control.checked ? "true" : "";
    found.schema = schemaField.hidden ? "" : schema.value;
    return { ...found, cursor: null, open: null, direction: null };
  }

  const tail = h("button", {
    type: "button",
    on: { click: () => changeQuery({ ...values(), tail: tail.dataset.on === "true" ? null : "true" }) },
  });
  const more = h(
    "details",
    { class: "filters" },
    h("summary", null, "Filters and formats"),
    h(
      "div",
      { class: "filter-grid" },
      texts.slice(1).map((each, index) => labelled(FILTERS[index + 1][1], each)),
      labelled("Key as", keyAs),
      labelled("Value as", valueAs),
      labelled("Isolation", isolation),
      labelled("Show control records", control, "check"),
      schemaField,
    ),
  );
  const element = h(
    "form",
    {
      class: "panel message-form",
      on: {
        input: showFields,
        submit: (event) => {
          event.preventDefault();
          changeQuery({ ...values(), tail: null });
        },
      },
    },
    h(
      "div",
      { class: "filter-line" },
      labelled("From", from),
      offsetField,
      timeFieldElement,
      labelled("Partitions", partition),
      labelled("At most", limit),
      labelled("Search", texts[0], "grow"),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Read"), tail),
    ),
    more,
  );

  function show(query) {
    for (const each of controls) {
      each.value = query[each.name] ?? "";
    }
    from.value = query.from ?? "end";
    at.value = timeField(query.time_ms);
    control.checked = query.control === "true";
    tail.dataset.on = String(query.tail === "true");
    tail.textContent = query.tail === "true" ? "■ Stop" : "▶ Live tail";
    more.open ||=
      FILTERS.slice(1).some(([name]) => query[name]) ||
      ["key_as", "value_as", "isolation", "control"].some((name) => query[name]);
    showFields();
  }

  return { element, show };
}
