// Kernels of a forecast: the longest as bars, all below the roofs of the GPU, all in a table.

import {bars, roofline} from './charts.js';
import {el} from './dom.js';
import {format, formatInterval} from './format.js';
import {section} from './parts.js';
import {numbers, ranges, table, words} from './table.js';

const MOST_BARS = 12, MOST_POINTS = 80;

const PHASES = ['forward', 'backward', 'optimizer', 'vision', 'prefill', 'decode'];
const phaseColor = (phase) => Math.max(0, PHASES.indexOf(phase));

function phaseLegend(kernels) {
  const phases = PHASES.filter((phase) => kernels.some((k) => k.phase === phase));
  return phases.length > 1 ? phases.map((name) => ({name, color: phaseColor(name)})) : [];
}

const longestFirst = (kernels) => [...kernels].sort((a, b) => b.total_s - a.total_s);

/** "m 4096 · n 5120 · k 1280" */
export function shapeText(shape) {
  return Object.entries(shape ?? {}).filter(([name]) => !name.includes('alignment'))
      .map(([name, value]) => `${name.replace(/_/g, ' ')} ${value}`).join(' · ');
}

function noteOf(k) {
  return [
    `${k.count} × ${formatInterval(k.latency_s, k.low_s, k.high_s, 's')}`,
    `${k.op}, ${k.dtype}, ${k.phase}`,
    shapeText(k.shape),
    `limited by ${k.limit}; ${format(k.utilization_ratio, 'share')} of what the data sheet allows`,
    k.extrapolated ? `extrapolated: ${k.extrapolated_feature ?? 'yes'}` : null,
  ].filter(Boolean);
}

/** Where the time goes: the kernels that take longest. */
function kernelBars(kernels, title) {
  const shown = longestFirst(kernels).slice(0, MOST_BARS);
  if (shown.length === 0) return null;
  const row = (k) =>
      ({label: k.name, value: k.total_s, note: noteOf(k), color: phaseColor(k.phase)});
  return bars(shown.map(row), {title, unit: 's', legend: phaseLegend(shown)});
}

/** The kernels below the roofs of the GPU. */
export function kernelRoofline(kernels, roofs, title) {
  const hasPlace = (k) => k.flops_per_byte > 0 && k.flops_per_s > 0;
  const shown = longestFirst(kernels).filter(hasPlace).slice(0, MOST_POINTS);
  if (shown.length === 0 || !roofs || roofs.length === 0) return null;
  const longest = shown[0].total_s;  // areas of points are relative to it
  const point = (k) => ({
    name: k.name,
    intensity: k.flops_per_byte,
    flops_per_s: k.flops_per_s,
    share: k.total_s / longest,
    color: phaseColor(k.phase),
    note: [`${format(k.total_s, 's')} in all`, ...noteOf(k)],
  });
  const named = roofs.map((roof) => ({...roof, name: roof.dtype}));
  return el('div', null,
            roofline(shown.map(point), named, {title, legend: phaseLegend(shown)}),
            el('p', {class: 'note'},
               'A point is a group of identical kernels; its area grows with their time. The ' +
               'lines are what the data sheet allows. Kernels without arithmetic are not shown.'));
}

/** All kernels, sortable. */
export function kernelTable(kernels, caption) {
  return table([
    words('kernel', (k) => k.name),
    words('operator', (k) => k.op),
    words('phase', (k) => k.phase),
    numbers('total', 's', (k) => k.total_s, 'time of all kernels of the row'),
    numbers('each', 's', (k) => k.latency_s, 'time of one kernel'),
    ranges('80 % interval', 's', (k) => [k.low_s, k.high_s], 'of the time of one kernel'),
    numbers('count', 'count', (k) => k.count),
    words('limit', (k) => k.limit, 'what limits it'),
    numbers('use', 'share', (k) => k.utilization_ratio,
            'the shortest time that the data sheet allows, divided by the forecast'),
    numbers('FLOP/s', 'FLOP/s', (k) => k.flops_per_s),
    numbers('FLOP/B', 'count', (k) => k.flops_per_byte, 'arithmetic intensity'),
    numbers('work', 'FLOP', (k) => k.flops),
    numbers('traffic', 'traffic', (k) => k.bytes),
    words('dtype', (k) => k.dtype),
    words('sizes', (k) => shapeText(k.shape)),
    words('extrapolated', (k) => (k.extrapolated ? k.extrapolated_feature ?? 'yes' : '')),
  ], kernels, {caption, first: 15, sort: 3});
}

/** Bars, roofline and table of kernels. `title`: of the bars. */
export function kernelParts(kernels, roofs, title) {
  return [
    kernelBars(kernels, title),
    kernelRoofline(kernels, roofs, 'Kernels and the roofs of the GPU'),
    el('details', null, el('summary', null, `All ${kernels.length} kinds of kernels`),
       kernelTable(kernels, 'Kernels')),
  ];
}

/** The kernels of an answer. */
export function kernelSection(kernels, roofs) {
  if (!kernels || kernels.length === 0) return null;
  return section('Where the time goes', kernelParts(
      kernels, roofs, 'The kernels that take longest, all their launches together'));
}
