// How figures, sizes and times are written.

const UNKNOWN = "–";
const whole = new Intl.NumberFormat("en-US");
const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

export function isKnown(value) {
  return value !== null && value !== undefined && value !== "";
}

export function count(value) {
  return isKnown(value) ? whole.format(value) : UNKNOWN;
}

/** 12,345 as 12.3 k: for charts and tiles, where room is short. */
export function short(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  const size = Math.abs(value);
  for (const [limit, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ]) {
    if (size >= limit) {
      return `${tenths.format(value / (limit === 1e4 ? 1e3 : limit))} ${unit}`;
    }
  }
  return tenths.format(value);
}

export function bytes(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? whole.format(size) : tenths.format(size)} ${UNITS[unit]}`;
}

export function rate(value) {
  return isKnown(value) ? `${short(value)}/s` : UNKNOWN;
}

export function byteRate(value) {
  return isKnown(value) ? `${bytes(Math.round(value))}/s` : UNKNOWN;
}

const two = (number) => String(number).padStart(2, "0");

/** Local time with milliseconds: 2026-05-31 14:03:07.125. */
export function time(ms) {
  if (!isKnown(ms) || ms < 0) {
    return UNKNOWN;
  }
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) {
    return String(ms);
  }
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(ms)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function clock(ms) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The value of an <input type="datetime-local"> for a time, and back. */
export function timeField(ms) {
  return isKnown(ms) ? time(Number(ms)).slice(0, 19).replace(" ", "T") : "";
}

export function timeOfField(text) {
  const ms = new Date(text).getTime();
  return Number.isNaN(ms) ? null : ms;
}

export function duration(ms) {
  if (!isKnown(ms)) {
    return UNKNOWN;
  }
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) {
    return `${seconds} s`;
  }
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
  if (seconds < 86400) {
    return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  }
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function ago(ms) {
  return isKnown(ms) ? `${duration(Date.now() - ms)} ago` : UNKNOWN;
}

export function text(value) {
  return isKnown(value) ? String(value) : UNKNOWN;
}
