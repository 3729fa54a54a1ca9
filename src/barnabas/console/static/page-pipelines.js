// Pipelines: their queries, lag, rows per second, and dead letters that can be replayed.

import { actionButton, openAction } from "./action.js";
import { get, path } from "./api.js";
import { h, replace } from "./dom.js";
import { ago, count, rate } from "./format.js";
import { badge } from "./page.js";
import { to } from "./router.js";
import { dataTable } from "./table.js";

const STATES = { running: "ok", active: "ok", failed: "error", error: "error", stopped: "warn" };

export function pipelinesPage(context) {
  context.head("Pipelines", {
    note: h("p", { class: "muted" }, "The files that the console was started with (--pipeline)."),
  });
  const list = h("div", { class: "stack" });
  const cards = new Map();
  context.root.append(list);
  context.poll(5000, async () => {
    const { items } = await get("/api/pipelines", null, context.signal);
    for (const pipeline of items) {
      if (!cards.has(pipeline.name)) {
        cards.set(pipeline.name, pipelineCard(context));
      }
      cards.get(pipeline.name).update(pipeline);
    }
    const elements = items.map(({ name }) => cards.get(name).element);
    if (
      elements.length !== list.children.length ||
      elements.some((element, index) => list.children[index] !== element)
    ) {
      replace(
        list,
        elements.length
          ? elements
          : h(
              "p",
              { class: "muted" },
              "No pipeline. Start the console with --pipeline FILE to see one here.",
            ),
      );
    }
  });
}

function stateOf(state) {
  return badge(state ?? "unknown", STATES[String(state).toLowerCase()] ?? "");
}

function pipelineCard(context) {
  const head = h("header", { class: "table-head" });
  const letters = h("p");
  const problem = h("p", { class: "problem", hidden: true });
  const table = dataTable({
    title: "Queries",
    key: ({ name, topic }) => `${name} ${topic ?? ""}`,
    empty: "The pipeline has not run yet.",
    alwaysDraw: true,
    columns: [
      {
        name: "name",
        title: "Query",
        sort: true,
        cell: ({ name, group }) => (group ? h("a", { href: to.group(group) }, name) : name),
      },
      {
        name: "state",
        title: "State",
        sort: true,
        csv: ({ state }) => state ?? "",
        cell: ({ state }) => stateOf(state),
      },
      {
        name: "topic",
        title: "Reads",
        wide: true,
        csv: ({ topic }) => topic ?? "",
        cell: ({ topic }) => (topic ? h("a", { href: to.topic(topic) }, topic) : "–"),
      },
      { name: "batch", title: "Batches", right: true, sort: true, cell: ({ batch }) => count(batch) },
      {
        name: "rows_per_second",
        title: "Rows",
        right: true,
        sort: true,
        cell: ({ rows_per_second }) => rate(rows_per_second),
      },
      {
        name: "lag",
        title: "Lag",
        right: true,
        sort: true,
        cell: ({ lag }) => h("b", { class: lag > 0 ? "lagging" : "" }, count(lag)),
      },
      {
        name: "last_batch_ms",
        title: "Last batch",
        right: true,
        cell: ({ last_batch_ms }) => ago(last_batch_ms),
      },
      {
        name: "error",
        title: "Error",
        csv: ({ error }) => error ?? "",
        cell: ({ error }) => (error ? h("span", { class: "error-text" }, error) : ""),
      },
    ],
  });
  const element = h("section", { class: "panel" }, head, problem, letters, table.element);
  return {
    element,
    update(pipeline) {
      replace(
        head,
        h("h2", null, pipeline.name, " ", stateOf(pipeline.state)),
        h("code", { class: "muted" }, pipeline.file),
      );
      problem.hidden = !pipeline.problem;
      problem.textContent = pipeline.problem ?? "";
      replace(letters, deadLetters(pipeline, context));
      table.update(pipeline.queries);
    },
  };
}

function replayLines({ lines }) {
  return lines?.length ? h("pre", { class: "payload" }, lines.join("\n")) : null;
}

function deadLetters(pipeline, context) {
  const { topic, count: number } = pipeline.dead_letters ?? {};
  if (!topic) {
    return null;
  }
  const replay = () =>
    openAction({
      title: `Replay the dead letters of ${pipeline.name}`,
      text: "They are sent to their topics again. What made them fail should be repaired first.",
      verb: "Replay",
      request: () => ({
        method: "POST",
        url: path("api", "pipelines", pipeline.name, "replay"),
        body: { step: null },
      }),
      preview: replayLines,
      result: replayLines,
      done: () => context.refresh(),
    });
  return [
    "Dead letters: ",
    h("b", { class: number ? "lagging" : "" }, count(number)),
    " in ",
    h("a", { href: to.topic(topic, "messages") }, topic),
    " ",
    actionButton("Replay…", replay, { small: true }),
  ];
}
