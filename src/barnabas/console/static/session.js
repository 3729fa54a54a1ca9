// Who uses the console, and what it may do here.

import { get, send, useToken } from "./api.js";

export const session = { features: {}, read_only: true };

function take(answer) {
  for (const name of Object.keys(session)) {
    delete session[name];
  }
  Object.assign(session, { features: {} }, answer);
  useToken(session.csrf);
  return session;
}

export async function loadSession() {
  return take(await get("/api/session"));
}

export async function login(user, password) {
  await send("POST", "/api/login", { user, password });
  return loadSession();
}

export async function logout() {
  await send("POST", "/api/logout");
  return loadSession();
}

export function mayChange() {
  return !session.read_only;
}

export function needsLogin() {
  return Boolean(session.login_required) && !session.user;
}
