// Tables that sort by a click on their heads.

import {el} from './dom.js';
import {format} from './format.js';

/**
 * @typedef {object} Column
 * @property {string} label  head
 * @property {(row: object) => any} get  the value that rows are sorted by
 * @property {string} [unit]  of `format`; a column of numbers has one
 * @property {(row: object) => string|Node} [show]  the cell, if not the formatted value
 * @property {string} [hint]  what the column is
 */

/** A column of texts. @returns {Column} */
export const words = (label, get, hint) => ({label, get, hint});
/** A column of numbers in a unit of `format`. @returns {Column} */
export const numbers = (label, unit, get, hint) => ({label, unit, get, hint});
/** A column of intervals: `get` gives both ends, the lower one sorts. @returns {Column} */
export function ranges(label, unit, get, hint) {
  const show = (row) => {
    const [low, high] = get(row);
    return typeof low === 'number' ? `${format(low, unit)} to ${format(high, unit)}` : '–';
  };
  return {label, unit, hint, show, get: (row) => get(row)[0]};
}

/**
 * A table; the first rows are shown, a button shows the rest.
 * @param {Column[]} columns
 * @param {object[]} rows
 * @param {{caption?: string, first?: number, sort?: number}} [options]
 *   `first`: rows to show before "show all"; `sort`: index of the column that rows come sorted by,
 *   falling
 */
export function table(columns, rows, options = {}) {
  const state = {rows, column: options.sort ?? -1, falling: true, most: options.first ?? 20};
  const heads = columns.map((column, i) => head(column, () => sortBy(i)));
  const body = el('tbody');
  const more = el('button', {type: 'button', class: 'more', onclick: showAll});

  function showAll() {
    state.most = Infinity;
    draw();
  }
  function sortBy(i) {
    // Numbers begin with the largest, texts with the first.
    state.falling = state.column === i ? !state.falling : columns[i].unit !== undefined;
    state.column = i;
    state.rows = sorted(rows, columns[i].get, state.falling);
    draw();
  }
  function draw() {
    heads.forEach((node, i) => {
      const order = state.falling ? 'descending' : 'ascending';
      if (i === state.column) node.setAttribute('aria-sort', order);
      else node.removeAttribute('aria-sort');
    });
    const shown = state.rows.slice(0, state.most);
    body.replaceChildren(...shown.map((row) => el('tr', null, columns.map((c) => cell(c, row)))));
    more.hidden = rows.length <= state.most;
    more.textContent = `show all ${rows.length}`;
  }
  if (state.column >= 0) state.rows = sorted(rows, columns[state.column].get, true);
  draw();
  const whole = el('table', null, options.caption ? el('caption', null, options.caption) : null,
                   el('thead', null, el('tr', null, heads)), body);
  const about = {tabindex: '0', role: 'region', 'aria-label': options.caption ?? 'table'};
  return el('div', null, el('div', {class: 'scroll', ...about}, whole), more);
}

function head(column, onclick) {
  const kind = column.unit !== undefined ? 'number' : null;
  return el('th', {scope: 'col', class: kind, title: column.hint},
            el('button', {type: 'button', onclick}, column.label));
}

function cell(column, row) {
  if (column.show) return el('td', {class: 'number'}, column.show(row));
  const value = column.get(row);
  if (column.unit !== undefined) return el('td', {class: 'number'}, format(value, column.unit));
  return el('td', {class: textClass(value)}, value ?? '–');
}

/** Ids stay in one line, sentences get room. */
function textClass(text) {
  if (typeof text !== 'string') return null;
  if (!text.includes(' ')) return text.length < 48 ? 'id' : null;
  return text.length < 12 ? null : 'sentence';
}

/** Rows by a value; those without one come last. */
function sorted(rows, get, falling) {
  const isMissing = (v) => v === null || v === undefined;
  const order = (x, y) =>
      (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)));
  return [...rows].sort((a, b) => {
    const x = get(a), y = get(b);
    if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y);
    return falling ? -order(x, y) : order(x, y);
  });
}
