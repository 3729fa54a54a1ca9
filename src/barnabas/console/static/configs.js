// Settings of a topic or a broker: value, default, where the value comes from, what it does; changes with a preview.

import { actionButton, openAction } from "./action.js";
import { get } from "./api.js";
import { debounce, h } from "./dom.js";
import { badge } from "./page.js";
import { changeQuery, currentQuery } from "./router.js";
import { dataTable } from "./table.js";

/** Sources are topic, dynamic_broker, dynamic_default_broker, static_broker and default. */
const isDefault = ({ source }) => source === "default";

export function configTable(context, url, label) {
  let items = [];
  const query = currentQuery();
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Search settings",
    "aria-label": "Search settings",
    value: query.search ?? "",
  });
  const changed = h("input", { type: "checkbox", checked: query.changed === "true" });
  const table = dataTable({
    title: "Settings",
    key: (config) => config.name,
    empty: "No settings match.",
    columns: [
      { name: "name", title: "Setting", sort: true, cell: settingCell },
      {
        name: "value",
        title: "Value",
        csv: shownValue,
        cell: (config) => h("code", { class: isDefault(config) ? "" : "strong" }, shownValue(config)),
      },
      {
        name: "default",
        title: "Default",
        wide: true,
        csv: (config) => config.default ?? "",
        cell: (config) => h("code", { class: "muted" }, config.default ?? "–"),
      },
      {
        name: "source",
        title: "Source",
        sort: true,
        wide: true,
        cell: ({ source }) => badge(sourceText(source), isDefault({ source }) ? "" : "accent"),
      },
      {
        name: "type",
        title: "Type",
        wide: true,
        csv: ({ type }) => type ?? "",
        cell: ({ type }) => type ?? "",
      },
      { name: "change", title: "", csv: null, cell: (config) => changeButtons(config, url, label, context) },
    ],
  });
  const draw = () => {
    const text = search.value.trim().toLowerCase();
    const found = items.filter(
      (config) =>
        (!changed.checked || !isDefault(config)) &&
        (config.name.toLowerCase().includes(text) ||
          (config.documentation ?? "").toLowerCase().includes(text)),
    );
    table.update(found);
  };
  search.addEventListener("input", draw);
  search.addEventListener(
    "input",
    debounce(300, () => changeQuery({ search: search.value.trim() }, { replace: true })),
  );
  changed.addEventListener("change", () =>
    changeQuery({ changed: changed.checked ? "true" : null }, { replace: true }),
  );
  changed.addEventListener("change", draw);
  context.root.append(
    h(
      "div",
      { class: "toolbar" },
      search,
      h("label", { class: "inline" }, changed, "only those that are set"),
    ),
    table.element,
  );
  context.poll(15000, async () => {
    items = (await get(url, null, context.signal)).items;
    draw();
  });
  return { update: draw };
}

function shownValue({ sensitive, value }) {
  return sensitive ? "(hidden)" : (value ?? "");
}

function settingCell({ name, documentation, read_only }) {
  return h(
    "details",
    { class: "setting" },
    h("summary", null, name, read_only ? [" ", badge("read-only")] : null),
    h("p", null, documentation || "There is no description."),
  );
}

function sourceText(source) {
  return (source ?? "").replaceAll("_", " ");
}

function changeButtons(config, url, label, context) {
  if (config.read_only) {
    return null;
  }
  const done = () => context.refresh();
  const set = () =>
    openAction({
      title: `Set ${config.name}`,
      text: config.documentation,
      verb: "Set",
      fields: [
        {
          name: "value",
          label: `Value for ${label}`,
          value: config.sensitive ? "" : (config.value ?? ""),
          help: config.default === null ? null : `Default: ${config.default}`,
        },
      ],
      request: ({ value }) => ({ method: "PATCH", url, body: { set: { [config.name]: value }, reset: [] } }),
      done,
    });
  const reset = () =>
    openAction({
      title: `Reset ${config.name}`,
      text: `The value for ${label} is removed, so that the default applies.`,
      verb: "Reset",
      request: () => ({ method: "PATCH", url, body: { set: {}, reset: [config.name] } }),
      done,
    });
  const own = ["topic", "dynamic_broker"].includes(config.source);
  return h(
    "span",
    { class: "row-actions" },
    actionButton("Set", set, { small: true }),
    own ? actionButton("Reset", reset, { small: true }) : null,
  );
}
