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

/**
 * A table; the first rows are shown, a button shows the rest.
 * @param {Column[]} columns
 * @param {object[]} rows
 * @param {{caption?: string, first?: number, sort?: number}} options
 *   `first`: rows to show before "show all"; `sort`: index of the column that rows come sorted by,
 *   falling
 */
export function table(columns, rows, options = {}) {
  const state = {rows: [...rows], column: options.sort ?? -1, falling: true,
                 most: options.first ?? 20};
  const body = el('tbody');
  const heads = columns.map((column, i) => el(
      'th', {scope: 'col', class: column.unit !== undefined ? 'number' : null, title: column.hint},
      el('button', {type: 'button', onclick: () => sortBy(i)}, column.label)));
  const more = el('button', {type: 'button', class: 'more', onclick: () => { state.most = Infinity; draw(); }});

  function sortBy(i) {
    state.falling = state.column === i ? !state.falling : columns[i].unit !== undefined;
    state.column = i;
    state.rows = sorted(rows, columns[i].get, state.falling);
    draw();
  }
  function draw() {
    heads.forEach((head, i) => {
      if (i === state.column) head.setAttribute('aria-sort', state.falling ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    body.replaceChildren(...state.rows.slice(0, state.most).map((row) => el('tr', null, columns.map((c) => cell(c, row)))));
    more.hidden = rows.length <= state.most;
    more.textContent = `show all ${rows.length}`;
  }
  if (state.column >= 0) state.rows = sorted(rows, columns[state.column].get, true);
  draw();
  return el('div', null, el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': options.caption ?? 'table'},
      el('table', null, options.caption ? el('caption', null, options.caption) : null,
         el('thead', null, el('tr', null, heads)), body)), more);
}

function cell(column, row) {
  const value = column.get(row);
  const shown = column.show ? column.show(row) : column.unit !== undefined ? format(value, column.unit) : value ?? '–';
  return el('td', {class: column.unit !== undefined ? 'number' : textClass(shown)}, shown);
}

/** Ids stay in one line, sentences get room. */
function textClass(shown) {
  if (typeof shown !== 'string' || shown.length < 12) return null;
  return !shown.includes(' ') && shown.length < 48 ? 'id' : 'sentence';
}

/** Rows by a value; those without one come last. */
function sorted(rows, get, falling) {
  const missing = (v) => v === null || v === undefined;
  return [...rows].sort((a, b) => {
    const x = get(a), y = get(b);
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
    return falling ? -order : order;
  });
}
