// Points of a sweep: two of their numbers against each other, and a table.

import {scatter} from './charts.js';
import {el} from './dom.js';
import {figure, headline, optionsSection, section} from './parts.js';
import {numbers, table, words} from './table.js';

/** A sweep with its points. */
export function viewSweep(s, {command}) {
  const columns = (s.columns ?? []).map(typedColumn);
  const rows = sweptRows(columns, new Set(s.front));
  return [
    headline({
      title: 'A sweep',
      subtitle: `rows in ${s.output}`,
      answer: s,
      figures: [
        figure('points', s.combinations, 'count'),
        figure('failed', s.failed, 'count', {good: s.failed === 0}),
        figure('refused by conditions', s.rejected || null, 'count'),
        figure('on the front', s.front.length, 'count', {note: sweptFront(s)}),
      ],
    }),
    section('Points', sweptScatter(s, columns, rows)),
    section('Table', sweptTable(columns, rows)),
    optionsSection({}, command),
  ];
}

const sweptFront = (s) => s.pareto.map((field) => field.replace(':', ' ')).join(', ') || undefined;

/** A column as numbers where all of its texts are. */
function typedColumn(column) {
  const given = column.values.filter((text) => text !== '');
  const isNumber = given.length > 0 && given.every((text) => Number.isFinite(Number(text)));
  const values = column.values.map((text) => (text === '' ? null : isNumber ? Number(text) : text));
  return {name: column.name, unit: column.unit, isNumber, values, differs: new Set(given).size > 1};
}

/** Points as records; those of the front first. */
function sweptRows(columns, front) {
  const count = columns[0]?.values.length ?? 0;
  const row = (_, i) => Object.fromEntries(columns.map((c) => [c.name, c.values[i]]));
  const rows = Array.from({length: count}, row);
  for (const row of rows) row.is_front = front.has(row.index);
  return rows.sort((a, b) => b.is_front - a.is_front);
}

/** The two axes: what the front is about, else what points differ in. */
function sweptAxes(s, columns) {
  const differs = (c) => c.isNumber && c.differs;
  const wanted = [
    ...s.pareto.map((field) => field.slice(4)), 'latency_s', 'cycles', 'peak_bytes',
    'tokens_per_s', 'on_chip_bytes', 'energy_j',
  ];
  const named = wanted.map((name) => columns.find((c) => c.name === name));
  const found = named.filter((c) => c && differs(c));
  return [...new Set(found)].slice(0, 2);
}

function sweptScatter(s, columns, rows) {
  const [y, x] = sweptAxes(s, columns);
  if (!x) return null;
  const models = [...new Set(rows.map((row) => row.model))].slice(0, 5);
  const point = (row) => ({
    x: row[x.name],
    y: row[y.name],
    label: `point ${row.index}`,
    note: sweptOptions(columns, row),
    is_front: row.is_front && s.pareto.length === 2,
    color: Math.max(models.indexOf(row.model), 0),
  });
  const shown = rows.filter((row) => row[x.name] !== null && row[y.name] !== null);
  return scatter(shown.map(point), {
    title: `${y.name} against ${x.name} of ${shown.length} points`,
    legend: models.length > 1 ? models.map((name, color) => ({name, color})) : undefined,
    x: {label: x.name, unit: x.unit || 'count', log: isWideColumn(x)},
    y: {label: y.name, unit: y.unit || 'count', log: isWideColumn(y)},
  });
}

/** Over more than a factor of ten, logarithms show more. */
function isWideColumn(column) {
  const values = column.values.filter((value) => value !== null);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return low > 0 && high > 10 * low;
}

/** The options that points differ in. */
function sweptOptions(columns, row) {
  const results = columns.findIndex((c) => c.name === 'cycles' || c.name === 'latency_s');
  const options = columns.slice(1, results);
  return options.filter((c) => c.differs).map((c) => `${c.name}: ${row[c.name]}`);
}

function sweptTable(columns, rows) {
  const front = words('front', (row) => (row.is_front ? 'yes' : ''));
  const shown = columns.map((c) => {
    const get = (row) => row[c.name];
    return c.isNumber ? numbers(c.name, c.unit || 'count', get) : words(c.name, get);
  });
  return table([front, ...shown], rows, {caption: 'Points of the sweep'});
}
