// Requests to the server, and what is known about whether it and the cluster answer.

class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Others listen here: "state" {server: null or a sentence, cluster: null or a sentence, since_ms}, and "login". */
export const reach = new EventTarget();
let csrf = "";

export function useToken(token) {
  csrf = token ?? "";
}

const state = { server: null, cluster: null, since_ms: null };

function know(changes) {
  Object.assign(state, changes);
  reach.dispatchEvent(new CustomEvent("state", { detail: { ...state } }));
}

/** The server answers these also while no broker answers: they do not show that the cluster is back. */
const WITHOUT_BROKERS = /^\/api\/(session|series|replication|pipelines)$|\/lag$/;

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
  if (answer?.stale_since_ms) {
    know({ cluster: "No broker of the cluster answers.", since_ms: answer.stale_since_ms });
  } else if (!WITHOUT_BROKERS.test(url)) {
    know({ cluster: null, since_ms: null });
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
      know({ server: "The console's server does not answer. Is it still running?" });
    }
    throw error;
  }
  know({ server: null });
  return readAnswer(response);
}

async function readAnswer(response) {
  const answer = await response.json().catch(() => null);
  if (response.ok) {
    return answer;
  }
  const { code, message } = answer?.error ?? {};
  if (response.status === 401) {
    reach.dispatchEvent(new CustomEvent("login"));
  } else if (code === "BROKER_UNAVAILABLE") {
    know({ cluster: message ?? "No broker of the cluster answers." });
  }
  throw new ApiError(
    response.status,
    code ?? `HTTP_${response.status}`,
    message ?? `The server answered ${response.status}.`,
  );
}
