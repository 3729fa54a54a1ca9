// Requests to the server, and what is known about whether it and the cluster answer.

class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Others listen here: "reachable", "unreachable" {text}, "stale" {since_ms}, "login". */
export const reach = new EventTarget();
let csrf = "";

export function useToken(token) {
  csrf = token ?? "";
}

function tell(kind, detail) {
  reach.dispatchEvent(new CustomEvent(kind, { detail }));
}

export function query(params) {
  const entries = Object.entries(params ?? {}).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  return entries.length ? `?${new URLSearchParams(entries)}` : "";
}

/** A path from parts that may contain anything: path("api", "groups", name). */
export function path(...parts) {
  return `/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

export async function get(url, params, signal) {
  const answer = await request("GET", url + query(params), undefined, signal);
  if (answer && answer.stale_since_ms) {
    tell("stale", { since_ms: answer.stale_since_ms });
  } else {
    tell("reachable");
  }
  return answer;
}

export function send(method, url, body, { preview = false, signal } = {}) {
  return request(method, url + (preview ? "?preview=true" : ""), body ?? {}, signal);
}

async function request(method, url, body, signal) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    headers["X-CSRF-Token"] = csrf;
  }
  let response;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name !== "AbortError") {
      tell("unreachable", { text: "The console's server does not answer. Is it still running?" });
    }
    throw error;
  }
  return readAnswer(response);
}

async function readAnswer(response) {
  const answer = await response.json().catch(() => null);
  if (response.ok) {
    return answer;
  }
  const { code, message } = answer?.error ?? {};
  if (response.status === 401) {
    tell("login");
  } else if (code === "BROKER_UNAVAILABLE") {
    tell("unreachable", { text: message ?? "No broker of the cluster answers." });
  }
  throw new ApiError(
    response.status,
    code ?? `HTTP_${response.status}`,
    message ?? `The server answered ${response.status}.`,
  );
}
