// Building the page. Data only ever becomes text nodes and attribute values here: nothing parses it as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("a", {href: "/topics", class: "link", on: {click}}, "Topics", anotherElement). */
export function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    setAttribute(element, name, value);
  }
  element.append(...nodes(children));
  return element;
}

function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    return;
  }
  if (name === "on") {
    for (const [event, handler] of Object.entries(value)) {
      element.addEventListener(event, handler);
    }
  } else if (name === "data") {
    Object.assign(element.dataset, value);
  } else if (name === "href" && !isOwnPath(value)) {
    throw new Error(`a link must be a path of the console, not ${value}`);
  } else if (name === "value" || name === "checked" || name === "selected") {
    element[name] = value;
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Only paths of this console: a name that came from a cluster cannot become a link to somewhere else. */
export function isOwnPath(path) {
  return typeof path === "string" && path.startsWith("/") && !path.startsWith("//") && !path.includes("\\");
}

/** Flattens lists and leaves out null, undefined and false; all else becomes a node or a text. */
export function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** A number that names an element, for labels. */
let lastId = 0;
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Calls the function once it was not called again for some time. */
export function debounce(milliseconds, call) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}
