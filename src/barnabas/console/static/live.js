// The server's stream of events. One connection per tab, closed while nobody looks at the tab: browsers allow
// only six connections to a host, for all tabs together.

const listeners = new Map([
  ["sample", new Set()],
  ["cluster", new Set()],
]);
let source = null;

export function listen(kind, handler, signal) {
  listeners.get(kind).add(handler);
  signal.addEventListener("abort", () => listeners.get(kind).delete(handler));
}

export function startEvents() {
  stopEvents();
  source = new EventSource("/api/events");
  for (const [kind, handlers] of listeners) {
    source.addEventListener(kind, (event) => {
      const data = JSON.parse(event.data);
      handlers.forEach((handler) => handler(data));
    });
  }
}

export function stopEvents() {
  source?.close();
  source = null;
}

let wasRunning = false;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    wasRunning = source !== null;
    stopEvents();
  } else if (wasRunning) {
    startEvents();
  }
});
