// What a page gets: its parameters, a place to draw, and refreshing that stops when the page is left.

import { h, replace } from "./dom.js";

export class Context {
  constructor(root, params) {
    this.root = root;
    this.params = params;
    this.leaving = new AbortController();
    this.signal = this.leaving.signal;
    this.polls = [];
  }

  leave() {
    this.leaving.abort();
  }

  get left() {
    return this.signal.aborted;
  }

  /** Heads the page: a title, what is above it, and actions at the right. */
  head(title, { above = null, actions = [], note = null } = {}) {
    document.title = `${typeof title === "string" ? title : title.textContent} – Barnabas`;
    this.heading = h("h1", { tabindex: -1 }, title);
    this.root.append(
      h(
        "header",
        { class: "page-head" },
        h("div", null, above ? h("p", { class: "above" }, above) : null, this.heading, note),
        h("div", { class: "actions" }, actions),
      ),
    );
  }

  /** Loads now and again after each pause, while the tab is visible. The first failure is shown in the page; later
   * ones leave what is there (the banner says that the cluster does not answer). */
  poll(pause_ms, load) {
    const poll = new Poll(this, pause_ms, load);
    this.polls.push(poll);
    poll.now();
    return poll;
  }

  /** Something else that is to be loaded again with the page. */
  onRefresh(load) {
    this.polls.push({ now: load });
  }

  refresh() {
    return Promise.all(this.polls.map((poll) => poll.now()));
  }
}

class Poll {
  constructor(context, pause_ms, load) {
    this.context = context;
    this.pause_ms = pause_ms;
    this.load = load;
    this.loaded = false;
    this.timer = 0;
    this.turn = 0;
    this.problem = h("div", { class: "panel problem", role: "alert", hidden: true });
    context.root.append(this.problem);
    context.signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  async now() {
    this.turn += 1;
    const turn = this.turn;
    clearTimeout(this.timer);
    try {
      await this.load();
      this.loaded = true;
      this.problem.hidden = true;
    } catch (error) {
      this.failed(error);
    }
    if (turn === this.turn && !this.context.left && this.pause_ms) {
      this.timer = setTimeout(() => this.again(), this.pause_ms);
    }
  }

  again() {
    if (document.hidden) {
      this.timer = setTimeout(() => this.again(), 1000);
    } else {
      this.now();
    }
  }

  failed(error) {
    if (this.context.left || error.name === "AbortError") {
      return;
    }
    const gone = this.loaded && (error.status === 404 || error.code?.startsWith?.("UNKNOWN_TOPIC"));
    if (!this.loaded || gone) {
      this.problem.hidden = false;
      replace(this.problem, error.message ?? String(error));
    }
    if (!("status" in error) && error.name !== "TypeError") {
      throw error; // a mistake of ours: it belongs in the browser's console
    }
  }
}

/** Tabs as links: each has an address of its own. */
export function tabs(label, entries, active) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    entries.map(([name, title, address]) =>
      h("a", { href: address, "aria-current": name === active ? "page" : null }, title),
    ),
  );
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

/** Figures with their names, as tiles. `kind` may be ok, warn or error. */
export function tiles(figures) {
  return h(
    "dl",
    { class: "tiles" },
    figures.map(([name, value, kind, href]) =>
      h(
        "div",
        { class: `tile ${kind ?? ""}` },
        h("dt", null, name),
        h("dd", null, href ? h("a", { href }, value) : value),
      ),
    ),
  );
}
