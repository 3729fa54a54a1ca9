// Short notices, and the banner that says that the cluster or the server does not answer.

import { reach } from "./api.js";
import { copyText } from "./csv.js";
import { h, replace } from "./dom.js";
import { ago, clock } from "./format.js";

const toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
const banner = h("div", { class: "banner", role: "alert", hidden: true });

export function noticeElements() {
  return [banner, toasts];
}

export function toast(text, kind = "ok") {
  const note = h("div", { class: `toast ${kind}` }, text);
  toasts.append(note);
  setTimeout(() => note.remove(), kind === "error" ? 8000 : 3500);
}

/** What is wrong is said once; while nothing is wrong, there is no banner. */
reach.addEventListener("state", ({ detail: { server, cluster, since_ms } }) => {
  const problem = server ?? cluster;
  banner.hidden = !problem;
  if (problem) {
    const age = since_ms
      ? `What you see is of ${clock(since_ms)} (${ago(since_ms)}).`
      : "The page keeps what it knows.";
    replace(banner, h("strong", null, problem), ` ${age} It tries again.`);
  }
});

export function copyButton(what, text, label = "Copy") {
  const copy = async () => {
    try {
      await copyText(typeof text === "function" ? await text() : text);
      toast(`${what} copied.`);
    } catch (error) {
      toast(error.message, "error");
    }
  };
  return h(
    "button",
    { type: "button", class: "small quiet", "aria-label": `${label}: ${what}`, on: { click: copy } },
    label,
  );
}

/** The words of a command are not broken at their hyphens. */
function words(command) {
  return command.split(/( +)/).map((word) => (word.trim() ? h("span", { class: "word" }, word) : word));
}

/** A command line that does the same as the console. */
export function commandBlock(command) {
  return h(
    "div",
    { class: "command" },
    h("pre", { tabindex: 0, "aria-label": "equivalent command line" }, words(command)),
    copyButton("Command", command),
  );
}
