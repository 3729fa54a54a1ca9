// Forms from a list of fields: {name, label, kind, value, help, options, placeholder, required, shown(values)}.

import { freshId, h } from "./dom.js";

const KINDS = {
  select: (field, attributes) =>
    h(
      "select",
      attributes,
      field.options.map(([value, label]) =>
        h("option", { value, selected: String(value) === String(field.value ?? "") }, label),
      ),
    ),
  area: (field, attributes) =>
    h("textarea", { ...attributes, rows: field.rows ?? 5, value: field.value ?? "", spellcheck: "false" }),
  check: (field, attributes) =>
    h("input", { ...attributes, type: "checkbox", checked: Boolean(field.value) }),
};

function control(field, id) {
  const attributes = {
    id,
    name: field.name,
    required: field.required,
    placeholder: field.placeholder,
    "aria-describedby": field.help ? `${id}-help` : null,
  };
  if (KINDS[field.kind]) {
    return KINDS[field.kind](field, attributes);
  }
  const more = {
    type: field.kind ?? "text",
    min: field.min,
    max: field.max,
    step: field.step,
    list: field.list,
  };
  return h("input", {
    ...attributes,
    ...more,
    value: field.value ?? "",
    autocomplete: "off",
    spellcheck: "false",
  });
}

export function buildForm(fields, changed) {
  const controls = new Map();
  const rows = fields.map((field) => {
    const id = freshId("field");
    const input = control(field, id);
    controls.set(field.name, input);
    const label = h("label", { for: id }, field.label);
    const help = field.help ? h("small", { id: `${id}-help` }, field.help) : null;
    const row = h("div", { class: `field ${field.kind === "check" ? "check" : ""}` }, label, input, help);
    return { field, row };
  });

  function values() {
    const found = {};
    for (const [name, input] of controls) {
      found[name] = input.type === "checkbox" ? input.checked : input.value;
    }
    return found;
  }

  function show() {
    const now = values();
    for (const { field, row } of rows) {
      row.hidden = Boolean(field.shown) && !field.shown(now);
    }
  }

  const element = h(
    "div",
    {
      class: "fields",
      on: {
        input: () => {
          show();
          changed(values());
        },
      },
    },
    rows.map(({ row }) => row),
  );
  show();
  return { element, values, control: (name) => controls.get(name) };
}
