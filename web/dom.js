// Elements. Every text becomes a text node, so names of models and kernels can hold markup,
// quotes and control characters. Nothing in web/ uses innerHTML.

const SVG = 'http://www.w3.org/2000/svg';

/** Characters that would change the direction or the lines of the text around them. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** A text that can be shown in one line: control characters become "\uXXXX". */
export function printable(text) {
  return String(text).replace(
      HIDDEN, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

/**
 * Sets attributes and adds children. `on...` keys are listeners, `class`, `title` and the like are
 * attributes; null and false leave an attribute out. Children: nodes, texts, lists of them, null.
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : printable(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : printable(child));
  }
  return node;
}

/** An HTML element: el('p', {class: 'note'}, 'text', node). */
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

let ids = 0;
/** An id that no other element of the page has. */
export function freshId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}
