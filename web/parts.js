// Parts that pages of several answers share: headline, warnings, memory, options, any record.

import {partBars} from './charts.js';
import {el} from './dom.js';
import {format, labelOf, unitOf} from './format.js';
import {numbers, table, words} from './table.js';

/** A part of the page with its title; null where it would be empty. */
export function section(title, ...children) {
  const shown = children.flat(2).filter(Boolean);
  if (shown.length === 0) return null;
  return el('section', {class: 'section'}, el('h2', null, title), shown);
}

/** Command lines that start a server or a training. */
export function launches(launch) {
  return section('Start it', (launch ?? []).flatMap((line) => [
    el('h3', null, line.software),
    el('pre', null, line.command),
    line.without ? el('p', {class: 'note'}, `Without: ${line.without}`) : null,
  ]));
}

/** A single bar that is made of parts. */
export const partsBar = (parts, options) => partBars([{label: '', parts}], options);

/** The line of a limit that may not have been given. */
export const limitAt = (value, label) => (value ? {value: Number(value), label} : undefined);

// ---- Headline ---------------------------------------------------------------------------------

/**
 * The title of an answer with its figures, assumptions and warnings.
 * @param {{title: string, subtitle?: string, figures: (Node|null)[], answer: object}} of
 */
export function headline({title, subtitle, figures, answer}) {
  const shown = figures.filter(Boolean);
  return el('header', null, el('h1', null, title),
            subtitle ? el('p', {class: 'subtitle'}, subtitle) : null,
            shown.length > 0 ? el('dl', {class: 'figures'}, shown) : null,
            assumptionsOf(answer), warningsOf(answer));
}

/**
 * A number that a reader looks for first; null where there is none.
 * @param {{low?: number, high?: number, note?: string, good?: boolean}} [about]
 *   `low`, `high`: 80 % interval; `good`: shown as good or bad
 */
export function figure(label, value, unit, {low, high, note, good} = {}) {
  if (value === null || value === undefined) return null;
  const hasRange = typeof low === 'number' && low !== high;
  const range = hasRange ? `80 %: ${format(low, unit)} to ${format(high, unit)}` : null;
  const tone = good === undefined ? null : good ? 'good' : 'bad';
  return el('div', null, el('dt', null, label),
            el('dd', {class: tone, 'data-value': value}, format(value, unit),
               [range, note].filter(Boolean).map((text) => el('span', {class: 'range'}, text))));
}

/** The row of a price table that a cost follows from; undefined: it is from no table. */
export function priceNote(price) {
  if (!price?.table) return undefined;
  const amount = `${price.price_per_gpu_hour} ${price.currency}`.trim();
  return [
    `${amount} an hour of ${price.gpu}`, price.table, price.date, price.guess ? 'a guess' : null,
  ].filter(Boolean).join(', ');
}

/** Whether it fits, in words below the peak. */
export function memoryFigure(memory) {
  const fits = memory.fits ? 'fits into' : 'does not fit into';
  return figure('memory of a GPU', memory.peak_bytes, 'bytes',
                {note: `${fits} ${format(memory.device_bytes, 'bytes')}`, good: memory.fits});
}

function assumptionsOf(answer) {
  const list = answer.assumptions ?? [];
  if (list.length === 0) return null;
  return el('p', {class: 'assumptions'}, el('strong', null, 'Assumes: '), list.join('; '));
}

function warningsOf(answer) {
  const list = answer.warnings ?? [];
  if (list.length === 0) return null;
  return el('ul', {class: 'warnings', 'aria-label': 'warnings'},
            list.map((text) => el('li', null, text)));
}

// ---- Memory -----------------------------------------------------------------------------------

/** Names of the parts of memory; what stays over a whole step comes first. */
export const MEMORY_PARTS = [
  'weights', 'optimizer', 'gradients', 'activations', 'temporaries', 'loss', 'inputs', 'cache',
];
const HELD_PARTS = ['weights', 'gradients', 'optimizer', 'activations', 'cache'];

/** The parts of a record with a field `<part>_bytes` for each. */
export const partsOf = (record, names) => names.filter((name) => record[`${name}_bytes`] > 0)
    .map((name) => ({name, value: record[`${name}_bytes`]}));

/** Memory by purpose at the peak, against what programs see. */
export function memorySection(memory) {
  const held = memory.at_peak ? partsOf(memory.at_peak, MEMORY_PARTS) : partsOf(memory, HELD_PARTS);
  const parts = [...held, ...partsOf(memory, ['workspace', 'framework'])];
  const chart = partsBar(parts, {
    title: `Memory of a GPU ${memory.at_peak ? 'at its peak' : 'by purpose'}`,
    unit: 'bytes',
    limit: {value: memory.device_bytes, label: 'GPU'},
  });
  const columns = [words('part', (p) => p.name), numbers('size', 'bytes', (p) => p.value)];
  const largest = memory.largest_batch ?
      el('p', null, `Largest batch that fits: ${format(memory.largest_batch)}.`) : null;
  return section('Memory', chart, table(columns, parts, {sort: 1}), largest,
                 remedies(memory.remedies ?? []));
}

function remedies(list) {
  if (list.length === 0) return null;
  const changes = (r) => [{option: r.option, value: r.value}, ...(r.also ?? [])];
  return table([
    words('change', (r) => changes(r).map((c) => `${flagOf(c.option)} ${c.value}`).join(' ')),
    numbers('memory', 'bytes', (r) => r.peak_bytes),
    words('fits', (r) => valueText(r.fits)),
    numbers('largest batch', 'count', (r) => r.largest_batch),
  ], list, {caption: 'Changes that need less memory'});
}

// ---- Options ----------------------------------------------------------------------------------

const flagOf = (option) => `--${option.replace(/_/g, '-')}`;

/** A word of a shell, quoted where that is needed. */
export function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

const SWITCHES = ['skip_unsupported'];  // of a forecast: flags without a value

function wordsOf(option, value) {
  if (SWITCHES.includes(option)) return value === 'on' ? [flagOf(option)] : [];
  return [flagOf(option), String(value)];
}

/** The command line that asks a forecast of one GPU again, from its options; null: not known. */
export function commandOf(answer) {
  if (!answer.options || !answer.model || !answer.gpu || answer.kind) return null;
  const options = Object.entries(answer.options).flatMap(([name, value]) => wordsOf(name, value));
  return ['tilecast', 'forecast', answer.model, '--gpu', answer.gpu, ...options]
      .map(shellWord).join(' ');
}

/** The options that were asked, with the defaults, and the command line. */
export function optionsSection(answer, command) {
  const options = Object.entries(answer.options ?? {}).map(([name, value]) => ({name, value}));
  const line = command ?? commandOf(answer);
  const columns = [
    words('option', (o) => flagOf(o.name)), words('value', (o) => valueText(o.value)),
  ];
  const list = options.length === 0 ? null : el(
      'details', null, el('summary', null, `All ${options.length} options, with defaults`),
      table(columns, options, {first: 100}));
  return section('Ask it again', line ? el('pre', {class: 'command'}, line) : null, list);
}

// ---- Any record -------------------------------------------------------------------------------

const isRecord = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const isRows = (v) => Array.isArray(v) && v.length > 0 && v.every(isRecord);

/** A value of any type in a cell. */
export function valueText(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  if (isRecord(value))
    return Object.entries(value).map(([name, v]) => `${name} ${valueText(v)}`).join(' · ');
  return typeof value === 'number' ? format(value) : String(value);
}

/** A field's value with the unit that its name states. */
const fieldText = (name, value) =>
    (typeof value === 'number' ? format(value, unitOf(name)) : valueText(value));

/** Fields of a record that hold one value, or a list of words. */
function fieldList(record, without) {
  const isShown = ([name, value]) => !without.includes(name) && name !== 'schema_version' &&
      !isRows(value) && !isRecord(value) && !(Array.isArray(value) && value.length === 0);
  const shown = Object.entries(record).filter(isShown);
  if (shown.length === 0) return null;
  return table([
    words('what', ([name]) => labelOf(name)),
    words('value', ([name, value]) => fieldText(name, value)),
  ], shown, {first: 60});
}

const FIRST_COLUMNS = ['name', 'rank', 'gpu', 'gpu_name', 'model', 'op', 'problem', 'file'];

/** Columns for rows of records, from the fields that they have. */
export function columnsOf(rows, without = []) {
  const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => !without.includes(name));
  const first = FIRST_COLUMNS.filter((name) => names.includes(name));
  return [...first, ...names.filter((name) => !first.includes(name))].map((name) => {
    const isNumber = rows.some((row) => typeof row[name] === 'number');
    if (isNumber) return numbers(labelOf(name), unitOf(name), (row) => row[name], name);
    return words(labelOf(name), (row) => valueText(row[name]), name);
  });
}

/** A number of a data file, with its source. */
const isFact = (v) => isRecord(v) && 'value' in v && 'source' in v;

function factTable(record) {
  const facts = Object.entries(record).filter(([, value]) => isFact(value));
  if (facts.length === 0) return null;
  return table([
    words('what', ([name]) => labelOf(name)),
    words('value', ([, fact]) => valueText(fact.value)),
    words('unit', ([, fact]) => (fact.unit === '1' ? '' : fact.unit)),
    words('source', ([, fact]) => fact.source),
  ], facts, {first: 100});
}

const DEEPEST = 3;  // records inside records that are shown

/** Everything in a record: fields, then a table for each list, then its parts. */
export function anyRecord(record, without = [], depth = 0) {
  const parts = [fieldList(record, without), factTable(record)];
  for (const [name, value] of Object.entries(record)) {
    if (without.includes(name) || isFact(value)) continue;
    if (isRows(value)) {
      parts.push(table(columnsOf(value), value, {caption: labelOf(name), first: 15}));
    } else if (isRecord(value) && Object.keys(value).length > 0 && depth < DEEPEST) {
      parts.push(el('h3', null, labelOf(name)), anyRecord(value, [], depth + 1));
    }
  }
  return el('div', null, parts.filter(Boolean));
}
