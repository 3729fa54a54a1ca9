// JSON texts as they are: set out on lines and coloured, without parsing numbers (64-bit ones would lose digits).

import { h } from "./dom.js";

const TOKEN = /("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|([{}[\],:])|\s+|(.)/gs;
const PRETTY_MAX = 200000;

function isJson(text) {
  if (!/^\s*[{["\d\-tfn]/.test(text)) {
    return false;
  }
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The tokens of a JSON text as [kind, text], with the white space between them replaced by line breaks. */
function layOut(text) {
  const tokens = [];
  let depth = 0;
  let afterOpen = false;
  const line = () => tokens.push(["space", `\n${"  ".repeat(depth)}`]);
  for (const [, string, number, word, sign] of text.matchAll(TOKEN)) {
    const closes = sign === "}" || sign === "]";
    if (closes) {
      depth -= 1;
    }
    if ((closes && !afterOpen) || (afterOpen && !closes && (string ?? number ?? word ?? sign))) {
      line();
    }
    if (sign) {
      tokens.push(["sign", sign === ":" ? ": " : sign]);
      afterOpen = sign === "{" || sign === "[";
      depth += afterOpen ? 1 : 0;
      if (sign === ",") {
        line();
      }
    } else if (string ?? number ?? word) {
      tokens.push([string ? "string" : number ? "number" : "word", string ?? number ?? word]);
      afterOpen = false;
    }
  }
  return markNames(tokens);
}

function markNames(tokens) {
  return tokens.map(([kind, text], index) => [
    kind === "string" && tokens[index + 1]?.[1] === ": " ? "name" : kind,
    text,
  ]);
}

/** A text in a <pre>: as laid out JSON if it is some, else as it is. */
export function textBlock(text, as) {
  const pretty = (as === "json" || as === "avro") && text.length <= PRETTY_MAX && isJson(text);
  const content = pretty
    ? layOut(text).map(([kind, token]) =>
        kind === "space" ? token : h("span", { class: `json-${kind}` }, token),
      )
    : text;
  return h("pre", { class: "payload", tabindex: 0 }, content);
}
