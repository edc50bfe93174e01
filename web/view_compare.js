// The same request on several GPUs, and two forecasts side by side.

import {bars, scatter} from './charts.js';
import {el} from './dom.js';
import {format} from './format.js';
import {figure, headline, limitAt, optionsSection, section, valueText} from './parts.js';
import {numbers, ranges, table, words} from './table.js';

const nameOf = (gpu) => gpu.gpu_name || gpu.gpu;
const labelOfGpu = (gpu) => (gpu.fits ? nameOf(gpu) : `${nameOf(gpu)} (does not fit)`);
const timeFigure = (name, f) =>
    figure(name, f.latency_s, 's', {low: f.latency_low_s, high: f.latency_high_s});

/** The same request on several GPUs. */
export function viewGpus(c, {command}) {
  const timed = c.gpus.filter((gpu) => typeof gpu.latency_s === 'number');
  const fitting = timed.filter((gpu) => gpu.fits);
  return [
    headline({
      title: `${c.model} on ${c.gpus.length} GPUs`,
      subtitle: c.gpus_each > 1 ? `${c.gpus_each} of each kind` : undefined,
      answer: c,
      figures: fitting.slice(0, 4).map((gpu) => timeFigure(nameOf(gpu), gpu)),
    }),
    section('Time', timeCharts(c, timed)),
    section('Memory', memoryBars(c.gpus.filter((gpu) => gpu.peak_bytes))),
    section('All GPUs', gpuTable(c.gpus), remarks(c.gpus)),
    optionsSection(c, command),
  ];
}

function timeCharts(c, gpus) {
  if (gpus.length === 0) return null;
  const hasTokens = gpus.some((gpu) => gpu.ttft);
  const isServer = c.options?.schedule === 'continuous';
  const whole = hasTokens ? 'From the prompt to the last token' : 'Time, with its 80 % interval';
  const title = isServer ? 'Mean time of a request' : whole;
  const times = bars(gpus.map(timeRow), {title, unit: 's'});
  if (!hasTokens) return [times, tokenBars(gpus)];
  const which = isServer ? ', p99' : '';
  return [
    times,
    limitBars(c, gpus, 'ttft', `Time to first token${which}`),
    limitBars(c, gpus, 'tpot', `Time per output token${which}`),
  ];
}

function timeRow(gpu) {
  const overlap = 'as fast as the one above, within the intervals';
  return {
    label: labelOfGpu(gpu),
    value: gpu.latency_s,
    low: gpu.latency_low_s,
    high: gpu.latency_high_s,
    muted: !gpu.fits,
    note: [gpu.overlaps_row_above ? overlap : null, ...(gpu.warnings ?? [])].filter(Boolean),
  };
}

/** TTFT or TPOT of servers, with the limit that was asked. */
function limitBars(c, gpus, name, title) {
  const row = (gpu) => ({
    label: labelOfGpu(gpu),
    value: gpu[name].seconds,
    low: gpu[name].low_s,
    high: gpu[name].high_s,
    muted: !gpu.keeps_up,
    note: gpu.keeps_up ? [] : 'it does not keep up: the times grow with the run',
  });
  const shown = gpus.filter((gpu) => gpu[name]);
  const limit = limitAt(c.options?.[`${name}_s`], 'limit');
  return shown.length === 0 ? null : bars(shown.map(row), {title, unit: 's', limit});
}

function tokenBars(gpus) {
  const row = (gpu) =>
      ({label: labelOfGpu(gpu), value: gpu.tokens_per_s, color: 2, muted: !gpu.fits});
  const shown = gpus.filter((gpu) => gpu.tokens_per_s);
  if (shown.length === 0) return null;
  return bars(shown.map(row), {title: 'Throughput', unit: 'tokens/s'});
}

function memoryBars(gpus) {
  const row = (gpu) => ({
    label: nameOf(gpu),
    value: gpu.peak_bytes,
    muted: !gpu.fits,
    color: gpu.fits ? 2 : 1,
    note: [`${format(gpu.usable_bytes, 'bytes')} usable`, gpu.fits ? 'it fits' : 'it does not fit'],
  });
  if (gpus.length === 0) return null;
  return bars(gpus.map(row), {title: 'Memory that is needed', unit: 'bytes'});
}

function gpuTable(gpus) {
  const has = (name) => gpus.some((gpu) => typeof gpu[name] === 'number');
  const columns = [
    words('GPU', nameOf),
    words('fits', (gpu) => (gpu.error ? '–' : valueText(gpu.fits))),
    numbers('time', 's', (gpu) => gpu.latency_s),
    ranges('80 % interval', 's', (gpu) => [gpu.latency_low_s, gpu.latency_high_s]),
    has('ttft_s') ? numbers('TTFT', 's', (gpu) => gpu.ttft_s) : null,
    has('tpot_s') ? numbers('TPOT', 's', (gpu) => gpu.tpot_s) : null,
    has('tokens_per_s') ? numbers('tokens/s', 'count', (gpu) => gpu.tokens_per_s) : null,
    has('goodput_requests_per_s') ?
        numbers('goodput', 'requests/s', (gpu) => gpu.goodput_requests_per_s) : null,
    numbers('memory', 'bytes', (gpu) => gpu.peak_bytes),
    numbers('usable', 'bytes', (gpu) => gpu.usable_bytes),
    numbers('HFU', 'share', (gpu) => gpu.utilization_ratio),
  ];
  return table(columns.filter(Boolean), gpus, {first: 50});
}

/** Why a GPU has no forecast, and what is not certain. */
function remarks(gpus) {
  const of = (gpu) => [gpu.error, ...(gpu.warnings ?? [])].filter(Boolean);
  const texts = gpus.flatMap((gpu) => of(gpu).map((text) => `${nameOf(gpu)}: ${text}`));
  if (texts.length === 0) return null;
  return el('ul', {class: 'note'}, texts.map((text) => el('li', null, text)));
}

/** Two forecasts side by side. */
export function viewComparison(c, {command}) {
  return [
    headline({
      title: `${c.a.name} beside ${c.b.name}`,
      subtitle: c.overlaps ?
          'The intervals overlap: which of the two is faster is not certain.' :
          'The intervals do not overlap.',
      answer: c,
      figures: [
        timeFigure(c.a.name, c.a),
        timeFigure(c.b.name, c.b),
        figure('second over first', c.ratio, ''),
      ],
    }),
    section('Totals', totals([c.a, c.b])),
    section('Where they differ', kernelScatter(c), kernelDifferences(c)),
    section('Memory', table([
      words('part', (part) => part.name),
      numbers(c.a.name, 'bytes', (part) => part.a_bytes),
      numbers(c.b.name, 'bytes', (part) => part.b_bytes),
      numbers('difference', 'bytes', (part) => part.difference_bytes),
    ], c.memory)),
    c.options.length === 0 ? null : section('Options that differ', table([
      words('option', (option) => option.option),
      words(c.a.name, (option) => option.a),
      words(c.b.name, (option) => option.b),
    ], c.options)),
    optionsSection({}, command),
  ];
}

function totals(sides) {
  const row = (side) => ({
    label: side.name, value: side.latency_s, low: side.latency_low_s, high: side.latency_high_s,
  });
  return [
    bars(sides.map(row), {title: 'Time, with its 80 % interval', unit: 's'}),
    table([
      words('forecast', (side) => side.name),
      words('model', (side) => side.model),
      words('GPU', (side) => side.gpu),
      words('dtype', (side) => side.dtype),
      numbers('time', 's', (side) => side.latency_s),
      numbers('TTFT', 's', (side) => side.ttft_s),
      numbers('TPOT', 's', (side) => side.tpot_s),
      numbers('tokens/s', 'count', (side) => side.tokens_per_s),
      numbers('memory', 'bytes', (side) => side.peak_bytes),
      words('fits', (side) => valueText(side.fits)),
    ], sides),
  ];
}

function kernelScatter(c) {
  const both = c.kernels.filter((kernel) => kernel.a_s > 0 && kernel.b_s > 0);
  if (both.length < 2) return null;
  const point = (kernel) =>
      ({x: kernel.a_s, y: kernel.b_s, label: kernel.name, note: [kernel.op, kernel.phase]});
  return scatter(both.map(point), {
    title: 'Time of each kind of kernel in both; on the line it is the same',
    diagonal: true,
    x: {label: c.a.name, unit: 's', log: true},
    y: {label: c.b.name, unit: 's', log: true},
  });
}

function kernelDifferences(c) {
  return table([
    words('kernels', (kernel) => kernel.name),
    words('operator', (kernel) => kernel.op),
    words('phase', (kernel) => kernel.phase),
    numbers(c.a.name, 's', (kernel) => kernel.a_s),
    numbers(c.b.name, 's', (kernel) => kernel.b_s),
    numbers('difference', 's', (kernel) => kernel.difference_s),
    numbers('launches of the first', 'count', (kernel) => kernel.a_count),
    numbers('of the second', 'count', (kernel) => kernel.b_count),
  ], c.kernels, {first: 20, caption: 'Kernels, the largest difference first'});
}
