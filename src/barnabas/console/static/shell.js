// The frame around the pages: navigation, theme, who is logged in, shortcuts.

import { dialog } from "./action.js";
import { h, replace } from "./dom.js";
import { noticeElements, toast } from "./notices.js";
import { go } from "./router.js";
import { logout, needsLogin, session } from "./session.js";

const ENTRIES = [
  ["/", "Overview", "o"],
  ["/topics", "Topics", "t"],
  ["/groups", "Groups", "g"],
  ["/brokers", "Brokers", "b"],
  ["/replication", "Replication", "r"],
  ["/transactions", "Transactions", "x", "transactions"],
  ["/pipelines", "Pipelines", "p", "pipelines"],
  ["/acls", "ACLs", "a", "acls"],
  ["/users", "Users", "u", "users"],
  ["/quotas", "Quotas", "q", "quotas"],
];
const SHORTCUTS = [
  ["/", "search"],
  ["n", "the page's main action, such as Create topic"],
  ["r", "load again"],
  ["↑ ↓ or j k, Enter", "walk through a table and open a row"],
  ["t", "light, dark or as the system"],
  ["?", "this list"],
];

const main = h("main", { id: "main", tabindex: -1 });
const navigation = h("nav", { id: "navigation", "aria-label": "Pages" });
const account = h("div", { class: "account" });
const cluster = h("div", { class: "cluster" });

export const mainElement = main;

export function buildShell(refresh) {
  const menu = h(
    "button",
    {
      type: "button",
      class: "menu quiet",
      "aria-expanded": "false",
      "aria-controls": "navigation",
      "aria-label": "Menu",
    },
    "☰",
  );
  const side = h(
    "aside",
    { class: "side" },
    h(
      "a",
      { class: "brand", href: "/" },
      h("img", { src: "/static/favicon.svg", alt: "", width: 26, height: 26 }),
      "Barnabas",
    ),
    menu,
    navigation,
    h("div", { class: "side-foot" }, cluster, account, footButtons()),
  );
  menu.addEventListener("click", () => {
    const open = side.classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
  });
  navigation.addEventListener("click", () => {
    side.classList.remove("open");
    menu.setAttribute("aria-expanded", "false");
  });
  const skip = h(
    "button",
    { type: "button", class: "skip", on: { click: () => main.focus() } },
    "Skip to the content",
  );
  const [banner, toasts] = noticeElements();
  replace(document.getElementById("app"), skip, side, h("div", { class: "content" }, banner, main), toasts);
  document.addEventListener("keydown", (event) => shortcut(event, refresh));
}

function footButtons() {
  return h(
    "div",
    { class: "foot-buttons" },
    h(
      "button",
      {
        type: "button",
        class: "small quiet",
        on: { click: nextTheme },
        title: "Light, dark, or as the system (t)",
      },
      "◐ Theme",
    ),
    h(
      "button",
      { type: "button", class: "small quiet", on: { click: showShortcuts }, title: "Keyboard shortcuts (?)" },
      "⌨ Keys",
    ),
  );
}

export function drawShell() {
  document.body.classList.toggle("logged-out", needsLogin());
  const entries = ENTRIES.filter(([, , , feature]) => !feature || session.features?.[feature]);
  const here = location.pathname;
  const isHere = (address) =>
    address === "/" ? here === "/" : here === address || here.startsWith(`${address}/`);
  replace(
    navigation,
    entries.map(([address, title]) =>
      h("a", { href: address, "aria-current": isHere(address) ? "page" : null }, title),
    ),
  );
  replace(
    cluster,
    h("span", { title: "bootstrap servers" }, session.bootstrap ?? ""),
    h(
      "small",
      { title: "cluster id, version of the console" },
      [session.cluster_id, session.version && `v${session.version}`].filter(Boolean).join(" · "),
    ),
    session.read_only
      ? h(
          "span",
          { class: "badge warn", title: "Started with --read-only: nothing can be changed here" },
          "read-only",
        )
      : null,
  );
  replace(
    account,
    session.user
      ? [
          h("span", null, session.user),
          h("button", { type: "button", class: "small", on: { click: leave } }, "Log out"),
        ]
      : null,
  );
}

async function leave() {
  await logout();
  go("/");
}

function nextTheme() {
  const root = document.documentElement;
  const order = ["auto", "light", "dark"];
  const next = order[(order.indexOf(root.dataset.theme ?? "auto") + 1) % order.length];
  if (next === "auto") {
    delete root.dataset.theme;
  } else {
    root.dataset.theme = next;
  }
  try {
    localStorage.setItem("barnabas.theme", next);
  } catch {
    toast("The browser does not keep the theme.", "warn");
  }
  toast(`Theme: ${next === "auto" ? "as the system" : next}.`);
}

function showShortcuts() {
  const rows = [...SHORTCUTS, ...ENTRIES.map(([, title, letter]) => [`g ${letter}`, title])];
  dialog(
    "Keyboard",
    h(
      "dl",
      { class: "keys" },
      rows.map(([keys, what]) => [h("dt", null, h("kbd", null, keys)), h("dd", null, what)]),
    ),
  );
}

let after_g = 0;

function shortcut(event, refresh) {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || needsLogin()) {
    return;
  }
  const entry = Date.now() - after_g < 1500 ? ENTRIES.find(([, , letter]) => letter === event.key) : null;
  after_g = event.key === "g" && !entry ? Date.now() : 0;
  if (entry) {
    go(entry[0]);
    return;
  }
  const actions = { "/": focusSearch, "?": showShortcuts, t: nextTheme, r: refresh, n: mainAction };
  if (Object.hasOwn(actions, event.key)) {
    event.preventDefault();
    actions[event.key]();
  }
}

function focusSearch() {
  const search = main.querySelector("input[type=search]");
  if (search) {
    search.focus();
    search.select();
  } else {
    go("/topics");
    main.querySelector("input[type=search]")?.focus();
  }
}

function mainAction() {
  main.querySelector("button[data-primary]")?.click();
}
