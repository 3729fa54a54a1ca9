// Actions. A dialog asks for what is needed, shows what would change and the equivalent command line (the server's
// preview), and shows the command again when it is done. Destructive actions need the name to be typed.

import { send } from "./api.js";
import { debounce, h, replace } from "./dom.js";
import { buildForm } from "./form.js";
import { commandBlock, toast } from "./notices.js";
import { mayChange } from "./session.js";

/** A button for an action; null in read-only mode, so that it is not shown. */
export function actionButton(label, open, { danger = false, primary = false, small = false } = {}) {
  if (!mayChange()) {
    return null;
  }
  const classes = [danger && "danger", primary && "primary", small && "small"].filter(Boolean).join(" ");
  return h(
    "button",
    { type: "button", class: classes, data: primary ? { primary: "true" } : {}, on: { click: open } },
    label,
  );
}

export function dialog(title, content, { wide = false } = {}) {
  const close = h(
    "button",
    { type: "button", class: "quiet close", "aria-label": "Close", on: { click: () => element.close() } },
    "✕",
  );
  const element = h(
    "dialog",
    { class: wide ? "wide" : "", "aria-label": title },
    h("header", null, h("h2", null, title), close),
    content,
  );
  element.addEventListener("close", () => element.remove());
  element.addEventListener("click", (event) => event.target.closest("a[href]") && element.close());
  document.body.append(element);
  element.showModal();
  return element;
}

/**
 * openAction({title, text, fields, request(values), confirm, verb, danger, preview(answer), result(answer), done}).
 * request gives {method, url, body}, or a sentence that says what is missing.
 */
export function openAction(action) {
  const command = h("div", { class: "preview", "aria-live": "polite" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const submit = h(
    "button",
    { type: "submit", class: action.danger ? "danger" : "primary", disabled: true },
    action.verb,
  );
  const typed = action.confirm
    ? h("input", {
        type: "text",
        name: "confirm",
        autocomplete: "off",
        spellcheck: "false",
        "aria-label": "Type the name",
      })
    : null;
  const state = { ready: false, number: 0 };

  const showProblem = (text) => {
    problem.hidden = !text;
    problem.textContent = text ?? "";
  };
  const enable = () => {
    submit.disabled = !state.ready || (typed !== null && typed.value !== action.confirm);
  };

  async function showPreview() {
    state.number += 1;
    const number = state.number;
    const request = action.request(form.values());
    if (typeof request === "string") {
      state.ready = false;
      replace(command, h("p", { class: "muted" }, request));
      enable();
      return;
    }
    try {
      const answer = await send(request.method, request.url, request.body, { preview: true });
      if (number === state.number) {
        showProblem(null);
        state.ready = true;
        replace(
          command,
          action.preview?.(answer.preview ?? {}),
          h("h3", null, "Equivalent command"),
          commandBlock(answer.command),
        );
      }
    } catch (error) {
      if (number === state.number) {
        state.ready = false;
        showProblem(error.message);
      }
    }
    enable();
  }

  const later = debounce(250, showPreview);
  const form = buildForm(action.fields ?? [], () => {
    state.number += 1; // a preview that is under way is of other values
    state.ready = false;
    enable();
    later();
  });
  typed?.addEventListener("input", enable);

  async function run(event) {
    event.preventDefault();
    if (submit.disabled) {
      return;
    }
    submit.disabled = true;
    const request = action.request(form.values());
    try {
      const answer = await send(request.method, request.url, request.body);
      showDone(element, action, answer);
    } catch (error) {
      showProblem(error.message);
      enable();
    }
  }

  const element = dialog(
    action.title,
    h(
      "form",
      { method: "dialog", on: { submit: run } },
      action.text ? h("p", null, action.text) : null,
      form.element,
      command,
      typed
        ? h("label", { class: "confirm" }, "Type ", h("code", null, action.confirm), " to confirm", typed)
        : null,
      problem,
      h(
        "footer",
        null,
        h("button", { type: "button", on: { click: () => element.close() } }, "Cancel"),
        submit,
      ),
    ),
    { wide: action.wide },
  );
  showPreview();
  (element.querySelector("input:not([type=checkbox]), select, textarea") ?? submit).focus();
  return element;
}

function showDone(element, action, answer) {
  const closed = h(
    "button",
    { type: "button", class: "primary", on: { click: () => element.close() } },
    "Close",
  );
  replace(
    element.querySelector("form"),
    h("p", { class: "done" }, "✓ Done."),
    action.result?.(answer),
    answer.command ? [h("h3", null, "Equivalent command"), commandBlock(answer.command)] : null,
    h("footer", null, closed),
  );
  closed.focus();
  toast(`${action.title}: done.`);
  action.done?.(answer);
}
