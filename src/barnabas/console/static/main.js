// Starts the console: the session, the frame, the routes.

import { reach } from "./api.js";
import { h, replace } from "./dom.js";
import { startEvents, stopEvents } from "./live.js";
import { loginPage } from "./page-login.js";
import { overviewPage } from "./page-overview.js";
import { topicsPage } from "./page-topics.js";
import { topicPage } from "./page-topic.js";
import { groupsPage } from "./page-groups.js";
import { groupPage } from "./page-group.js";
import { brokersPage, brokerPage } from "./page-brokers.js";
import { replicationPage } from "./page-replication.js";
import { transactionsPage } from "./page-transactions.js";
import { pipelinesPage } from "./page-pipelines.js";
import { aclsPage, quotasPage, usersPage } from "./page-security.js";
import { Context } from "./page.js";
import { find, onNavigate, route } from "./router.js";
import { loadSession, needsLogin, session } from "./session.js";
import { buildShell, drawShell, mainElement } from "./shell.js";

route("/", overviewPage);
route("/topics", topicsPage);
route("/topics/:topic/:tab?", topicPage);
route("/groups", groupsPage);
route("/groups/:group/:tab?", groupPage);
route("/brokers", brokersPage);
route("/brokers/:broker/:tab?", brokerPage);
route("/replication", replicationPage);
route("/transactions", transactionsPage);
route("/pipelines", pipelinesPage);
route("/acls", aclsPage);
route("/users", usersPage);
route("/quotas", quotasPage);

const RETRY_MS = 2000;
let current = null;

function missingPage(context) {
  context.head("There is no such page");
  context.root.append(h("p", null, "See the ", h("a", { href: "/" }, "overview"), "."));
}

function render() {
  drawShell();
  if (needsLogin()) {
    show({ name: "login", page: loginPage, params: { done: start } });
    return;
  }
  const found = find(location.pathname) ?? { pattern: "missing", params: {}, page: missingPage };
  show({ name: JSON.stringify([found.pattern, found.params]), page: found.page, params: found.params });
}

/** A change of the query alone goes to the page that is there, which keeps its fields and focus. */
function show({ name, page, params }) {
  if (current && current.name === name && current.handle?.update) {
    current.handle.update();
    return;
  }
  const sameName = current?.name === name;
  current?.context.leave();
  const root = h("div", { class: "page" });
  const context = new Context(root, params);
  current = { name, context, handle: null };
  replace(mainElement, root);
  current.handle = page(context) ?? null;
  if (!sameName) {
    window.scrollTo(0, 0);
    // Screen readers and the keyboard begin at the new page's head, unless the page has chosen a field.
    if (!root.contains(document.activeElement)) {
      context.heading?.focus({ preventScroll: true });
    }
  }
}

async function start() {
  try {
    await loadSession();
  } catch {
    // The banner says that nothing answers.
    drawShell();
    setTimeout(start, RETRY_MS);
    return;
  }
  if (needsLogin()) {
    stopEvents();
  } else {
    startEvents();
  }
  current?.context.leave();
  current = null;
  render();
}

reach.addEventListener("login", () => {
  if (!needsLogin() && session.login_required !== false) {
    start();
  }
});
buildShell(() => current?.context.refresh());
onNavigate(render);
start();
