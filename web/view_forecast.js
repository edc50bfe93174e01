// Forecasts of a pass or training step, on one GPU or several; of text generation and servers; of
// an accelerator.

import {bars, lines, partBars} from './charts.js';
import {el} from './dom.js';
import {format, formatInterval, labelOf} from './format.js';
import {kernelParts, kernelSection} from './kernels.js';
import {
  anyRecord, figure, headline, launches, limitAt, memoryFigure, memorySection, optionsSection, partsBar,
  priceNote, section,
} from './parts.js';
import {numbers, table, words} from './table.js';

const gpuOf = (f) => f.gpu_name || f.gpu;
const ends = (time) => ({low: time.low_s, high: time.high_s});
const latencyEnds = (f) => ({low: f.latency_low_s, high: f.latency_high_s});
const several = (count, name) => (count > 1 ? `${count} × ${name}` : name);

/** Parts of a bar from the fields of a record that are above 0. */
const secondsOf = (record, names) => names.filter((name) => record[name] > 0)
    .map((name) => ({name: labelOf(name), value: record[name]}));

const SHOWN_WAIT_S = 1e-6;  // for the host; less is rounding

// ---- One pass or training step ----------------------------------------------------------------

/** One pass or training step. */
export function viewPass(f, {command}) {
  return [
    headline({
      title: `${f.model} on ${several(f.ranks ?? 1, gpuOf(f))}`,
      subtitle: [
        f.mode, `batch ${format(f.batch)}`,
        f.seq > 1 ? `${format(f.seq)} tokens a sequence` : null, f.dtype,
        f.cluster ? `cluster ${f.cluster}` : null,
      ].filter(Boolean).join(', '),
      answer: f,
      figures: passFigures(f),
    }),
    section('Parts of the time', passParts(f), stages(f.stages ?? [])),
    kernelSection(f.kernels, f.roofs),
    memorySection(f.memory),
    f.rank_tables ?
        section('Embedding tables of the ranks', anyRecord({ranks: f.rank_tables})) : null,
    launches(f.launch),
    optionsSection(f, command),
  ];
}

/** Watts and joules; nothing where power is not forecast. */
function powerFigures(power) {
  if (!power) return [];
  return [
    figure('power of a GPU', power.power_w, 'W', {
      low: power.power_low_w,
      high: power.power_high_w,
      note: `limit ${format(power.limit_w, 'W')}`,
    }),
    figure('energy of a token', power.energy_per_token_j, 'J'),
    figure('cost of a million tokens', power.cost_per_million_tokens, '',
           {note: priceNote(power.gpu_price)}),
  ];
}

function passFigures(f) {
  const run = f.training_run;
  return [
    figure(f.mode === 'training' ? 'time of a step' : 'time of a pass', f.latency_s, 's',
           latencyEnds(f)),
    memoryFigure(f.memory),
    figure('throughput', f.tokens_per_s, 'tokens/s'),
    figure('MFU', f.mfu_ratio, 'share', {note: 'of the peak for the dtype'}),
    f.host_wait_s > SHOWN_WAIT_S ? figure('the GPU waits for the host', f.host_wait_s, 's') : null,
    figure('parameters', f.parameters, 'parameters'),
    ...powerFigures(f.power),
    run ? figure('training run', run.days, 'days', {note: `${format(run.gpu_hours)} GPU hours`}) :
          null,
  ];
}

/** Those that sum up to the latency (docs/reference/results.md, forward_s). */
const PASS_PARTS = [
  'forward_s', 'backward_s', 'optimizer_s', 'gradient_copies_s', 'slowed_s',
  'exposed_communication_s', 'bubble_s',
];

function passParts(f) {
  const parts = secondsOf(f, PASS_PARTS);
  return parts.length < 2 ? null : partsBar(parts, {title: 'What the step is made of', unit: 's'});
}

const STAGE_PARTS = ['compute_s', 'exposed_communication_s', 'bubble_s'];

function stages(list) {
  if (list.length < 2) return [];
  const row = (stage) => ({
    label: `stage ${stage.stage}`,
    parts: secondsOf(stage, STAGE_PARTS),
    note: `${stage.layers} layers, peak ${format(stage.peak_bytes, 'bytes')}`,
  });
  return [
    partBars(list.map(row), {title: 'Pipeline stages', unit: 's'}),
    table([
      numbers('stage', 'count', (stage) => stage.stage),
      numbers('layers', 'count', (stage) => stage.layers),
      ...STAGE_PARTS.map((name) => numbers(labelOf(name), 's', (stage) => stage[name])),
      numbers('peak memory', 'bytes', (stage) => stage.peak_bytes),
    ], list),
  ];
}

// ---- Text generation --------------------------------------------------------------------------

const MODEL_FIELDS = [
  'parameters', 'active_parameters', 'flops_per_token', 'kv_bytes_per_token',
  'window_bytes_per_token', 'window_tokens', 'state_bytes_per_sequence',
];

/** Text generation, and servers. */
export function viewGeneration(f, {command}) {
  const load = f.serving ? loadText(f.serving) : `batch ${format(f.batch)}`;
  const model = Object.fromEntries(MODEL_FIELDS.map((name) => [name, f[name]]));
  return [
    headline({
      title: `${f.model} on ${several(f.gpus, gpuOf(f))}`,
      subtitle: `${f.software}, prompt ${format(f.prompt)}, output ${format(f.output)} tokens, ` +
          `${load}, ${f.dtype}, cache ${f.kv_dtype}`,
      answer: f,
      figures: f.serving ? serverFigures(f) : batchFigures(f),
    }),
    f.serving ? serverSection(f.serving) : null,
    course(f.course ?? []),
    stepSection(f.prefill, f.roofs, 'The prefill step'),
    stepSection(f.decode, f.roofs, 'The decode step in the middle of the output'),
    stepSection(f.vision?.step, f.roofs, 'The vision tower'),
    memorySection(f.memory),
    f.cache_pool ? section('The cache of the server', anyRecord(f.cache_pool)) : null,
    f.drafts ? section('Speculative decoding', anyRecord(f.drafts)) : null,
    section('The model', anyRecord(model)),
    launches(f.launch),
    optionsSection(f, command),
  ];
}

function loadText(serving) {
  if (serving.rate) return `${format(serving.rate)} requests/s`;
  if (serving.concurrency) return `${format(serving.concurrency)} clients`;
  return 'requests of a file';
}

function batchFigures(f) {
  const time = (label, interval) => figure(label, interval.seconds, 's', ends(interval));
  return [
    time('time to first token', f.time_to_first_token),
    time('time per output token', f.time_per_output_token),
    time('whole request', f.request),
    figure('throughput', f.tokens_per_s, 'tokens/s', {note: 'written'}),
    memoryFigure(f.memory),
    ...powerFigures(f.power),
  ];
}

/** What a reader is shown: the steady part, else the whole run. */
const partOf = (serving) => serving.steady ?? serving.all;

function serverFigures(f) {
  const part = partOf(f.serving);
  const p99 = (label, times) => figure(`${label}, p99`, times.p99.seconds, 's', ends(times.p99));
  return [
    p99('time to first token', part.time_to_first_token),
    p99('time per output token', part.time_per_output_token),
    p99('end to end', part.end_to_end),
    figure('throughput', part.output_tokens_per_s, 'tokens/s',
           {note: `${format(part.requests_per_s)} requests/s`}),
    figure('goodput', f.serving.goodput_requests_per_s, 'requests/s',
           {note: 'requests that meet the limits'}),
    figure('the server', f.serving.keeps_up ? 'keeps up' : 'does not keep up', '',
           {good: f.serving.keeps_up}),
    memoryFigure(f.memory),
    ...powerFigures(f.power),
  ];
}

const REQUEST_TIMES = {
  time_to_first_token: {title: 'Time to first token of requests', limit: 'ttft_s'},
  time_per_output_token: {title: 'Time per output token of requests', limit: 'tpot_s'},
  end_to_end: {title: 'Requests from end to end', limit: ''},
};

function serverSection(serving) {
  const part = partOf(serving);
  const chart = ([name, {title, limit}]) => {
    const times = part[name];
    const row = (kind) => ({label: kind, value: times[kind].seconds, ...ends(times[kind])});
    return bars(['mean', 'median', 'p99'].map(row),
                {title, unit: 's', limit: limitAt(serving[limit], 'limit')});
  };
  const note = serving.steady ?
      `Of ${format(part.requests)} requests in the steady part: without the first and the last ` +
          `${format(serving.most_in_flight)}.` :
      `Of all ${format(part.requests)} requests: too few for a steady part.`;
  return section('The server under load', Object.entries(REQUEST_TIMES).map(chart),
                 el('p', {class: 'note'}, note),
                 el('details', null, el('summary', null, 'All numbers of the server'),
                    anyRecord(serving)));
}

function course(list) {
  if (list.length < 2) return null;
  const points = list.map((p) => ({x: p.kv_tokens, y: p.seconds, ...ends(p)}));
  return section('A decode step as the cache grows', lines([{name: 'decode step', points}], {
    title: 'Time of a decode step by the length of the cache',
    height: 240,
    x: {label: 'tokens in the cache of each sequence', unit: 'count', zero: false},
    y: {label: 'time', unit: 's'},
  }));
}

/** A step of a server, or a run of the vision tower. */
function stepSection(step, roofs, title) {
  if (!step || !step.kernels || step.kernels.length === 0) return null;
  const limits = Object.entries(step.limits ?? {}).map(([name, value]) => ({name, value}));
  const waits = step.host_wait_s > SHOWN_WAIT_S;
  return section(
      title,
      el('p', null, formatInterval(step.latency_s, step.low_s, step.high_s, 's'),
         waits ? `; the GPU waits ${format(step.host_wait_s, 's')} for the host` : ''),
      limits.length === 0 ? null :
          partsBar(limits, {title: 'What limits its kernels, by their time', unit: 'share'}),
      kernelParts(step.kernels, roofs, 'The kernels that take longest'));
}

// ---- Accelerators -----------------------------------------------------------------------------

/** A forward pass on an accelerator. */
export function viewAccelerator(f, {command}) {
  return [
    headline({
      title: `${f.model} on ${gpuOf(f)}`,
      subtitle: `${f.dataflow}, ${f.dtype}, batch ${format(f.batch)}`,
      answer: f,
      figures: [
        figure('time of a pass', f.latency_s, 's', latencyEnds(f)),
        figure('cycles', f.cycles, 'count'),
        figure('use of the multipliers', f.utilization_ratio, 'share'),
        figure('multiplications', f.macs, 'parameters'),
        figure('energy', f.energy_j, 'J'),
        figure('on the chip', f.on_chip_bytes, 'bytes'),
      ],
    }),
    section('Where the time goes', layerBars(f.layers),
            el('details', null, el('summary', null, `All ${f.layers.length} layers`),
               layerTable(f.layers))),
    section('The description', anyRecord({parameters: f.parameters})),
    optionsSection(f, command),
  ];
}

function layerBars(layers) {
  const most = 16;
  const row = (layer) => ({
    label: layer.name,
    value: layer.cycles,
    low: layer.low_cycles,
    high: layer.high_cycles,
    note: [
      `${layer.count} such layers`, `${layer.op}, limited by ${layer.bound || 'nothing'}`,
      layer.sizes, layer.mapping,
    ],
  });
  const longest = layers.filter((l) => l.cycles > 0).sort((a, b) => b.cycles - a.cycles);
  return bars(longest.slice(0, most).map(row),
              {title: 'Cycles of one layer, the longest first', unit: 'count'});
}

function layerTable(layers) {
  return table([
    words('layer', (layer) => layer.name),
    words('operator', (layer) => layer.op),
    words('where', (layer) => layer.where),
    numbers('count', 'count', (layer) => layer.count),
    numbers('cycles of one', 'count', (layer) => layer.cycles),
    words('limit', (layer) => layer.bound),
    numbers('multiplications', 'parameters', (layer) => layer.macs),
    numbers('traffic', 'traffic', (layer) => layer.bytes),
    numbers('energy', 'J', (layer) => layer.energy_j),
    words('sizes', (layer) => layer.sizes),
    words('mapping', (layer) => layer.mapping),
    words('fused', (layer) => layer.fused.join(', ')),
  ], layers, {first: 20});
}
