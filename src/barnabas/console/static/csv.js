// Tables as CSV, and the clipboard.

/** Spreadsheets run cells that begin so as formulas. A message could contain one. */
const FORMULA = /^[=+@\t\r]|^-(?![\d.]+$)/;

function csvCell(value) {
  if (value === null || value === undefined) {
    return "";
  }
  let text = typeof value === "string" ? value : String(value);
  if (typeof value === "string" && FORMULA.test(text)) {
    text = `'${text}`;
  }
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvText(titles, rows) {
  return [titles, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without TLS, on another host than localhost, browsers offer only the old way.
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) {
    throw new Error("The browser does not allow copying.");
  }
}
