// The login form: user and password of the cluster.

import { h } from "./dom.js";
import { login } from "./session.js";

export function loginPage(context) {
  document.title = "Log in – Barnabas";
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const user = h("input", {
    id: "user",
    name: "user",
    autocomplete: "username",
    required: true,
    autocapitalize: "none",
  });
  const password = h("input", {
    id: "password",
    name: "password",
    type: "password",
    autocomplete: "current-password",
    required: true,
  });
  const button = h("button", { type: "submit", class: "primary" }, "Log in");

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      await login(user.value, password.value);
      await context.params.done();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
      password.value = "";
      password.focus();
    } finally {
      button.disabled = false;
    }
  }

  context.root.append(
    h(
      "form",
      { class: "panel login", on: { submit } },
      h("h1", null, "Log in"),
      h("p", { class: "muted" }, "With a user and a password of the cluster (SASL)."),
      h("label", { for: "user" }, "User"),
      user,
      h("label", { for: "password" }, "Password"),
      password,
      problem,
      button,
    ),
  );
  user.focus();
}
