// The same request on several GPUs, and two forecasts side by side.

import {bars, scatter} from './charts.js';
import {el} from './dom.js';
import {format} from './format.js';
import {figure, headline, optionsSection, section, valueText} from './parts.js';
import {table} from './table.js';

/** The same request on several GPUs. */
export function viewGpus(c, {command}) {
  const timed = c.gpus.filter((g) => g.latency_s !== null && g.latency_s !== undefined);
  const isServer = c.gpus.some((g) => g.ttft);
  return [
    headline({
      title: `${c.model} on ${c.gpus.length} GPUs`, answer: c,
      subtitle: c.gpus_each > 1 ? `${c.gpus_each} of each kind` : undefined,
      figures: timed.filter((g) => g.fits).slice(0, 4).map(
          (g) => figure(g.gpu_name || g.gpu, g.latency_s, 's', {low: g.latency_low_s, high: g.latency_high_s})),
    }),
    section('Time', timeBars(timed, 'latency_s', isServer ? 'Mean time of a request' : 'Time, with its 80 % interval'),
            isServer ? [limitBars(c, timed, 'ttft', 'Time to first token, p99'), limitBars(c, timed, 'tpot', 'Time per output token, p99')] : tokenBars(timed)),
    section('Memory', bars(c.gpus.filter((g) => g.peak_bytes).map((g) => ({
      label: g.gpu_name || g.gpu, value: g.peak_bytes, muted: !g.fits, color: g.fits ? 2 : 1,
      note: [`${format(g.usable_bytes, 'bytes')} usable`, g.fits ? 'it fits' : 'it does not fit']})),
                           {title: 'Memory that is needed', unit: 'bytes'})),
    section('All GPUs', gpuTable(c.gpus), remarks(c.gpus)),
    optionsSection(c, command),
  ];
}

const gpuLabel = (g) => `${g.gpu_name || g.gpu}${g.fits ? '' : ' (does not fit)'}`;

function timeBars(gpus, name, title) {
  if (gpus.length === 0) return null;
  const stem = name.replace(/_s$/, '');
  return bars(gpus.map((g) => ({
    label: gpuLabel(g), value: g[name], low: g[`${stem}_low_s`], high: g[`${stem}_high_s`], muted: !g.fits,
    note: [g.overlaps_row_above ? 'as fast as the one above, within the intervals' : null, ...(g.warnings ?? [])].filter(Boolean)})),
              {title, unit: 's'});
}

/** TTFT or TPOT of servers, with the limit that was asked. */
function limitBars(c, gpus, name, title) {
  const limit = c.options?.[`${name}_s`];
  const shown = gpus.filter((g) => g[name]);
  if (shown.length === 0) return null;
  return bars(shown.map((g) => ({label: gpuLabel(g), value: g[name].seconds, low: g[name].low_s, high: g[name].high_s, muted: !g.keeps_up,
                                 note: g.keeps_up ? [] : 'it does not keep up: the times grow with the run'})),
              {title, unit: 's', limit: limit ? {value: Number(limit), label: 'limit'} : undefined});
}

function tokenBars(gpus) {
  const shown = gpus.filter((g) => g.tokens_per_s);
  return shown.length === 0 ? null : bars(shown.map((g) => ({label: gpuLabel(g), value: g.tokens_per_s, color: 2, muted: !g.fits})),
                                          {title: 'Throughput', unit: 'tokens/s'});
}

function gpuTable(gpus) {
  const has = (name) => gpus.some((g) => g[name] !== null && g[name] !== undefined);
  return table([
    {label: 'GPU', get: (g) => g.gpu_name || g.gpu},
    {label: 'fits', get: (g) => (g.error ? '–' : valueText(g.fits))},
    {label: 'time', get: (g) => g.latency_s, unit: 's'},
    {label: '80 % interval', get: (g) => g.latency_low_s, unit: 's', show: (g) => (g.latency_s ? `${format(g.latency_low_s, 's')} to ${format(g.latency_high_s, 's')}` : '–')},
    ...(has('ttft_s') ? [{label: 'TTFT', get: (g) => g.ttft_s, unit: 's'}, {label: 'TPOT', get: (g) => g.tpot_s, unit: 's'}] : []),
    ...(has('tokens_per_s') ? [{label: 'tokens/s', get: (g) => g.tokens_per_s, unit: 'count'}] : []),
    ...(has('goodput_requests_per_s') ? [{label: 'goodput', get: (g) => g.goodput_requests_per_s, unit: 'requests/s'}] : []),
    {label: 'memory', get: (g) => g.peak_bytes, unit: 'bytes'}, {label: 'usable', get: (g) => g.usable_bytes, unit: 'bytes'},
    {label: 'HFU', get: (g) => g.utilization_ratio, unit: 'share'},
  ], gpus, {first: 50});
}

/** Why a GPU has no forecast, and what is not certain. */
function remarks(gpus) {
  const texts = gpus.flatMap((g) => [g.error, ...(g.warnings ?? [])].filter(Boolean).map((text) => `${g.gpu_name || g.gpu}: ${text}`));
  return texts.length === 0 ? null : el('ul', {class: 'note'}, texts.map((text) => el('li', null, text)));
}

/** Two forecasts side by side. */
export function viewComparison(c, {command}) {
  const sides = [c.a, c.b];
  const timeOf = (s) => ({label: s.name, value: s.latency_s, low: s.latency_low_s, high: s.latency_high_s});
  return [
    headline({
      title: `${c.a.name} beside ${c.b.name}`, answer: c,
      subtitle: c.overlaps ? 'The intervals overlap: which of the two is faster is not certain.' : 'The intervals do not overlap.',
      figures: [
        figure(c.a.name, c.a.latency_s, 's', {low: c.a.latency_low_s, high: c.a.latency_high_s}),
        figure(c.b.name, c.b.latency_s, 's', {low: c.b.latency_low_s, high: c.b.latency_high_s}),
        figure('second over first', c.ratio, ''),
      ],
    }),
    section('Totals', bars(sides.map(timeOf), {title: 'Time, with its 80 % interval', unit: 's'}), table([
      {label: 'forecast', get: (s) => s.name}, {label: 'model', get: (s) => s.model}, {label: 'GPU', get: (s) => s.gpu},
      {label: 'dtype', get: (s) => s.dtype}, {label: 'time', get: (s) => s.latency_s, unit: 's'},
      {label: 'TTFT', get: (s) => s.ttft_s, unit: 's'}, {label: 'TPOT', get: (s) => s.tpot_s, unit: 's'},
      {label: 'tokens/s', get: (s) => s.tokens_per_s, unit: 'count'}, {label: 'memory', get: (s) => s.peak_bytes, unit: 'bytes'},
      {label: 'fits', get: (s) => valueText(s.fits)}], sides, {})),
    section('Where they differ', kernelScatter(c), table([
      {label: 'kernels', get: (k) => k.name}, {label: 'operator', get: (k) => k.op}, {label: 'phase', get: (k) => k.phase},
      {label: c.a.name, get: (k) => k.a_s, unit: 's'}, {label: c.b.name, get: (k) => k.b_s, unit: 's'},
      {label: 'difference', get: (k) => k.difference_s, unit: 's'},
      {label: 'launches', get: (k) => k.a_count, unit: 'count', show: (k) => `${format(k.a_count)} / ${format(k.b_count)}`}],
      c.kernels, {first: 20, caption: 'Kernels, the largest difference first'})),
    section('Memory', table([
      {label: 'part', get: (m) => m.name}, {label: c.a.name, get: (m) => m.a_bytes, unit: 'bytes'},
      {label: c.b.name, get: (m) => m.b_bytes, unit: 'bytes'}, {label: 'difference', get: (m) => m.difference_bytes, unit: 'bytes'}], c.memory, {})),
    c.options.length > 0 ? section('Options that differ', table([
      {label: 'option', get: (o) => o.option}, {label: c.a.name, get: (o) => o.a}, {label: c.b.name, get: (o) => o.b}], c.options, {})) : null,
    optionsSection({}, command),
  ];
}

function kernelScatter(c) {
  const both = c.kernels.filter((k) => k.a_s > 0 && k.b_s > 0);
  if (both.length < 2) return null;
  return scatter(both.map((k) => ({x: k.a_s, y: k.b_s, label: k.name, note: [k.op, k.phase]})), {
    title: 'Time of each kind of kernel in both; on the line it is the same', diagonal: true,
    x: {label: c.a.name, unit: 's', log: true}, y: {label: c.b.name, unit: 's', log: true}});
}

