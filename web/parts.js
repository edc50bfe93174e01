// Parts that pages of several answers share: headline, warnings, kernels, memory, options.

import {bars, partBars, roofline} from './charts.js';
import {el} from './dom.js';
import {format, formatInterval, labelOf, unitOf} from './format.js';
import {table} from './table.js';

/** A part of the page with its title; null where it would be empty. */
export function section(title, ...children) {
  const shown = children.flat().filter(Boolean);
  if (shown.length === 0) return null;
  return el('section', {class: 'section'}, el('h2', null, title), shown);
}

/**
 * The title of an answer with its figures, assumptions and warnings.
 * @param {{title: string, subtitle?: string, figures: (object|null)[], answer: object}} of
 */
export function headline({title, subtitle, figures, answer}) {
  return el('header', null, el('h1', null, title), subtitle ? el('p', {class: 'subtitle'}, subtitle) : null,
            el('dl', {class: 'figures'}, figures.filter(Boolean)), assumptionsOf(answer), warningsOf(answer));
}

/** A number that a reader looks for first. `id` finds it in tests. */
export function figure(label, value, unit, {low, high, note, good} = {}) {
  if (value === null || value === undefined) return null;
  const range = low === undefined || low === null || low === high ? null
                    : `80 %: ${format(low, unit)} to ${format(high, unit)}`;
  const tone = good === undefined ? null : good ? 'good' : 'bad';
  return el('div', null, el('dt', null, label), el('dd', {class: tone, 'data-value': value}, format(value, unit),
            [range, note].filter(Boolean).map((text) => el('span', {class: 'range'}, text))));
}

/** Whether it fits, in words beside the peak. */
export function memoryFigure(memory) {
  return figure('memory of a GPU', memory.peak_bytes, 'bytes', {
    note: memory.fits ? `fits into ${format(memory.device_bytes, 'bytes')}`
                      : `does not fit into ${format(memory.device_bytes, 'bytes')}`,
    good: memory.fits,
  });
}

export function assumptionsOf(answer) {
  const list = answer.assumptions ?? [];
  return list.length === 0 ? null : el('p', {class: 'assumptions'}, el('strong', null, 'Assumes: '), list.join('; '));
}

export function warningsOf(answer) {
  const list = answer.warnings ?? [];
  if (list.length === 0) return null;
  return el('ul', {class: 'warnings', 'aria-label': 'warnings'}, list.map((text) => el('li', null, text)));
}

/** "m 4096 · n 5120 · k 1280" */
export function shapeText(shape) {
  return Object.entries(shape ?? {}).filter(([name]) => !name.includes('alignment'))
      .map(([name, value]) => `${name.replace(/_/g, ' ')} ${value}`).join(' · ');
}

// ---- Kernels ----------------------------------------------------------------------------------

const PHASES = ['forward', 'backward', 'optimizer', 'vision', 'prefill', 'decode'];
const phaseColor = (phase) => Math.max(0, PHASES.indexOf(phase));

function phaseLegend(kernels) {
  const phases = PHASES.filter((phase) => kernels.some((k) => k.phase === phase));
  return phases.length > 1 ? phases.map((name) => ({name, color: phaseColor(name)})) : [];
}

const bySeconds = (kernels) => [...kernels].sort((a, b) => (b.total_s ?? 0) - (a.total_s ?? 0));

function kernelNote(k) {
  return [
    `${k.count} × ${formatInterval(k.latency_s, k.low_s, k.high_s, 's')}`,
    `${k.op}, ${k.dtype}, ${k.phase}`,
    shapeText(k.shape),
    `limited by ${k.limit}; ${format(k.utilization_ratio, 'share')} of what the data sheet allows`,
    k.extrapolated ? `extrapolated: ${k.extrapolated_feature ?? ''}` : null,
  ].filter(Boolean);
}

/** Where the time goes: the kernels that take longest, as bars. */
export function kernelBars(kernels, title) {
  const most = 12;
  const shown = bySeconds(kernels).slice(0, most);
  if (shown.length === 0) return null;
  const rows = shown.map((k) => ({label: k.name, value: k.total_s, note: kernelNote(k), color: phaseColor(k.phase)}));
  return bars(rows, {title, unit: 's', legend: phaseLegend(shown)});
}

/** All kernels, sortable. */
export function kernelTable(kernels, caption) {
  const columns = [
    {label: 'kernel', get: (k) => k.name},
    {label: 'operator', get: (k) => k.op},
    {label: 'phase', get: (k) => k.phase},
    {label: 'total', get: (k) => k.total_s, unit: 's', hint: 'time of all kernels of the row'},
    {label: 'each', get: (k) => k.latency_s, unit: 's', hint: 'time of one kernel'},
    {label: '80 % interval', get: (k) => k.low_s, unit: 's',
     show: (k) => `${format(k.low_s, 's')} to ${format(k.high_s, 's')}`},
    {label: 'count', get: (k) => k.count, unit: 'count'},
    {label: 'limit', get: (k) => k.limit, hint: 'what limits it'},
    {label: 'use', get: (k) => k.utilization_ratio, unit: 'share',
     hint: 'the shortest time that the data sheet allows, divided by the forecast'},
    {label: 'FLOP/s', get: (k) => k.flops_per_s, unit: 'FLOP/s'},
    {label: 'FLOP/B', get: (k) => k.flops_per_byte, unit: 'count', hint: 'arithmetic intensity'},
    {label: 'work', get: (k) => k.flops, unit: 'FLOP'},
    {label: 'traffic', get: (k) => k.bytes, unit: 'traffic'},
    {label: 'dtype', get: (k) => k.dtype},
    {label: 'sizes', get: (k) => shapeText(k.shape)},
    {label: 'extrapolated', get: (k) => (k.extrapolated ? k.extrapolated_feature ?? 'yes' : '')},
  ];
  return table(columns, kernels, {caption, first: 15, sort: 3});
}

/** The kernels below the roofs of the GPU. */
export function kernelRoofline(kernels, roofs, title) {
  const most = 80;
  const shown = bySeconds(kernels).filter((k) => k.flops_per_byte > 0 && k.flops_per_s > 0).slice(0, most);
  if (shown.length === 0 || !roofs || roofs.length === 0) return null;
  const longest = Math.max(...shown.map((k) => k.total_s));  // the size of points is relative to it
  const points = shown.map((k) => ({
    name: k.name, intensity: k.flops_per_byte, flops_per_s: k.flops_per_s, share: k.total_s / longest,
    color: phaseColor(k.phase), note: [`${format(k.total_s, 's')} in all`, ...kernelNote(k)],
  }));
  const named = roofs.map((r) => ({...r, name: r.dtype}));
  return el('div', null, roofline(points, named, {title, legend: phaseLegend(shown)}),
            el('p', {class: 'note'}, 'A point is a group of identical kernels; its area grows with their time. ',
               'The lines are what the data sheet allows. Kernels without arithmetic are not shown.'));
}

/** Bars, roofline and table of the kernels of an answer or a step. */
export function kernelSection(kernels, roofs, title = 'Where the time goes') {
  if (!kernels || kernels.length === 0) return null;
  return section(title, kernelBars(kernels, 'The kernels that take longest, all their launches together'),
                 kernelRoofline(kernels, roofs, 'Kernels and the roofs of the GPU'),
                 el('details', null, el('summary', null, `All ${kernels.length} kinds of kernels`),
                    kernelTable(kernels, 'Kernels')));
}

// ---- Memory -----------------------------------------------------------------------------------

const PARTS = ['weights', 'optimizer', 'gradients', 'activations', 'temporaries', 'loss', 'inputs', 'cache'];

/** The parts of a record with a field `<part>_bytes` for each. */
export const partsOf = (record, names) => names.filter((name) => record[`${name}_bytes`] > 0)
    .map((name) => ({name, value: record[`${name}_bytes`]}));

/** Memory by purpose at the peak, against what programs see. */
export function memorySection(memory) {
  const held = memory.at_peak ? partsOf(memory.at_peak, PARTS)
                              : partsOf(memory, ['weights', 'gradients', 'optimizer', 'activations', 'cache']);
  const parts = [...held, ...partsOf(memory, ['workspace', 'framework'])];
  const chart = partBars([{label: '', parts}], {
    title: `Memory of a GPU ${memory.at_peak ? 'at its peak' : 'by purpose'}`, unit: 'bytes',
    limit: {value: memory.device_bytes, label: 'GPU'},
  });
  return section('Memory', chart, table([
    {label: 'part', get: (p) => p.name}, {label: 'size', get: (p) => p.value, unit: 'bytes'}], parts, {sort: 1}),
  memory.largest_batch ? el('p', null, `Largest batch that fits: ${format(memory.largest_batch)}.`) : null,
  remedies(memory.remedies));
}

function remedies(list) {
  if (!list || list.length === 0) return null;
  const change = (r) => [`--${r.option.replace(/_/g, '-')} ${r.value}`,
                         ...(r.also ?? []).map((c) => `--${c.option.replace(/_/g, '-')} ${c.value}`)].join(' ');
  return table([
    {label: 'change', get: change}, {label: 'memory', get: (r) => r.peak_bytes, unit: 'bytes'},
    {label: 'fits', get: (r) => (r.fits ? 'yes' : 'no')},
    {label: 'largest batch', get: (r) => r.largest_batch, unit: 'count'},
  ], list, {caption: 'Changes that need less memory'});
}

// ---- Options ----------------------------------------------------------------------------------

/** A word of a shell, quoted where that is needed. */
export function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

/** The command line that asks a forecast of one GPU again, from its options; null: not known. */
export function commandOf(answer) {
  if (!answer.options || !answer.model || !answer.gpu || answer.kind) return null;
  const words = ['tilecast', 'forecast', answer.model, '--gpu', answer.gpu];
  for (const [name, value] of Object.entries(answer.options)) words.push(`--${name.replace(/_/g, '-')}`, String(value));
  return words.map(shellWord).join(' ');
}

/** The options that were asked, with the defaults, and the command line. */
export function optionsSection(answer, command) {
  const options = Object.entries(answer.options ?? {}).map(([name, value]) => ({name, value}));
  const line = command ?? commandOf(answer);
  return section('Ask it again', line ? el('pre', {class: 'command'}, line) : null,
                 options.length > 0 ? el('details', null, el('summary', null, `All ${options.length} options, with defaults`),
                   table([{label: 'option', get: (o) => `--${o.name.replace(/_/g, '-')}`},
                          {label: 'value', get: (o) => valueText(o.value)}], options, {first: 100})) : null);
}

// ---- Any record -------------------------------------------------------------------------------

const isRecord = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
const isRows = (v) => Array.isArray(v) && v.length > 0 && v.every(isRecord);

/** A value of any type in a cell. */
export function valueText(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  if (isRecord(value)) return Object.entries(value).map(([k, v]) => `${k} ${valueText(v)}`).join(' · ');
  return typeof value === 'number' ? format(value) : String(value);
}

/** Fields of a record that are no lists of records, by name. */
export function fieldList(record, without = []) {
  const shown = Object.entries(record).filter(
      ([name, value]) => !without.includes(name) && !isRows(value) && name !== 'schema_version' &&
          !(Array.isArray(value) && value.length === 0) && !isRecord(value));
  if (shown.length === 0) return null;
  return table([{label: 'what', get: ([name]) => labelOf(name)},
                {label: 'value', get: ([name, value]) => (typeof value === 'number' ? format(value, unitOf(name)) : valueText(value))}],
               shown, {first: 60});
}

/** Columns for rows of records, from their first row's fields. */
export function columnsOf(rows, without = []) {
  const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => !without.includes(name));
  const first = ['name', 'rank', 'gpu', 'gpu_name', 'model', 'op', 'problem', 'file'].filter((n) => names.includes(n));
  return [...first, ...names.filter((n) => !first.includes(n))].map((name) => {
    const isNumber = rows.some((r) => typeof r[name] === 'number');
    return {label: labelOf(name), hint: name, get: (row) => (isNumber || typeof row[name] === 'string' ? row[name] : valueText(row[name])),
            unit: isNumber ? unitOf(name) : undefined};
  });
}

/** Everything in a record: fields, then a table for each list, then its parts. */
export function anyRecord(record, without = [], depth = 0) {
  const parts = [fieldList(record, without)];
  for (const [name, value] of Object.entries(record)) {
    if (without.includes(name)) continue;
    if (isRows(value)) parts.push(table(columnsOf(value), value, {caption: labelOf(name), first: 15}));
    else if (isRecord(value) && Object.keys(value).length > 0 && depth < 3)
      parts.push(el('h3', null, labelOf(name)), anyRecord(value, [], depth + 1));
  }
  return el('div', null, parts.filter(Boolean));
}
