// The live tail. At most some hundred rows are kept, whatever arrives, and drawn once per frame.

import { h, replace } from "./dom.js";
import { count, short } from "./format.js";

const ROWS_MAX = 200;

export function startTail({ url, table, note, controls }) {
  const source = new EventSource(url);
  const state = { paused: false, waiting: [], arrived: 0, skipped: 0, frame: 0, recent: [], broken: false };
  const pauseButton = h("button", {
    type: "button",
    class: "small",
    on: { click: () => (state.paused ? resume() : pause()) },
  });

  function tell() {
    const [first, last] = [state.recent[0], state.recent.at(-1)];
    const seconds = first && last !== first ? (last.at - first.at) / 1000 : 0;
    const speed = seconds ? state.recent.slice(1).reduce((sum, { number }) => sum + number, 0) / seconds : 0;
    const parts = [
      state.broken ? "The connection broke; trying again" : state.paused ? "Paused" : "Live",
      `${count(state.arrived)} messages`,
      seconds ? `${short(Math.round(speed))}/s` : null,
      state.skipped ? `${count(state.skipped)} not shown (too fast to read)` : null,
      state.paused && state.waiting.length ? `${count(state.waiting.length)} waiting` : null,
    ];
    note.textContent = parts.filter(Boolean).join(" · ");
    pauseButton.textContent = state.paused ? "▶ Resume" : "❚❚ Pause";
  }

  function draw() {
    state.frame = 0;
    if (!state.paused && state.waiting.length) {
      table.prepend(state.waiting, ROWS_MAX);
      state.waiting = [];
    }
    tell();
  }

  function schedule() {
    if (!state.frame) {
      state.frame = requestAnimationFrame(draw);
    }
  }

  function pause() {
    state.paused = true;
    tell();
  }

  function resume() {
    state.paused = false;
    draw();
  }

  source.addEventListener("messages", (event) => {
    const { items, skipped } = JSON.parse(event.data);
    const number = items.length + (skipped ?? 0);
    state.broken = false;
    state.arrived += number;
    state.skipped += skipped ?? 0;
    state.recent = [...state.recent.slice(-20), { at: performance.now(), number }];
    // The newest first; what does not fit into the page is dropped here already.
    state.waiting = [...items.reverse(), ...state.waiting].slice(0, ROWS_MAX);
    schedule();
  });
  source.addEventListener("open", () => {
    state.broken = false;
    tell();
  });
  source.addEventListener("error", () => {
    state.broken = true;
    tell();
  });
  replace(controls, h("span", { class: "live-dot", "aria-hidden": "true" }), pauseButton);
  tell();
  return {
    pause,
    stop() {
      source.close();
      cancelAnimationFrame(state.frame);
    },
  };
}
