// Forecasts: a pass or training step, on one GPU or several; text generation and servers; an
// accelerator; memory over time; one kernel; one collective.

import {bars, lines, partBars, stacked} from './charts.js';
import {el} from './dom.js';
import {format, formatInterval, labelOf} from './format.js';
import {anyRecord, figure, headline, kernelBars, kernelRoofline, kernelSection, kernelTable, memoryFigure,
        memorySection, optionsSection, partsOf, section, shapeText} from './parts.js';
import {table} from './table.js';

const gpuOf = (f) => f.gpu_name || f.gpu;

/** One pass or training step. */
export function viewPass(f, {command}) {
  const training = f.mode === 'training';
  const ranks = f.ranks ?? 1;
  return [
    headline({
      title: `${f.model} on ${ranks > 1 ? `${ranks} × ` : ''}${gpuOf(f)}`,
      subtitle: `${f.mode}, batch ${format(f.batch)}, ${format(f.seq)} tokens a sequence, ${f.dtype}` +
          (f.cluster ? `, cluster ${f.cluster}` : ''),
      answer: f,
      figures: [
        figure(training ? 'time of a step' : 'time of a pass', f.latency_s, 's', {low: f.latency_low_s, high: f.latency_high_s}),
        memoryFigure(f.memory),
        figure('throughput', f.tokens_per_s, 'tokens/s'),
        figure('MFU', f.mfu_ratio, 'share', {note: 'of the peak for the dtype'}),
        figure('the GPU waits for the host', f.host_wait_s, 's'),
        figure('parameters', f.parameters, 'parameters'),
        f.training_run ? figure('training run', f.training_run.days, 'days', {note: `${format(f.training_run.gpu_hours)} GPU hours`}) : null,
      ],
    }),
    section('Parts of the time', passParts(f), stages(f)),
    kernelSection(f.kernels, f.roofs),
    memorySection(f.memory),
    f.rank_tables ? section('Embedding tables of the ranks', anyRecord({ranks: f.rank_tables})) : null,
    optionsSection(f, command),
  ];
}

/** Those that sum up to the latency (docs/reference/results.md, forward_s). */
const PASS_PARTS = ['forward_s', 'backward_s', 'optimizer_s', 'gradient_copies_s', 'slowed_s',
                    'exposed_communication_s', 'bubble_s'];

const secondsOf = (record, names) => names.filter((name) => record[name] > 0)
    .map((name) => ({name: labelOf(name), value: record[name]}));

function passParts(f) {
  const parts = secondsOf(f, PASS_PARTS);
  if (parts.length < 2) return null;
  return partBars([{label: '', parts}], {title: 'What the step is made of', unit: 's'});
}

function stages(f) {
  if (!f.stages || f.stages.length < 2) return null;
  const time = ['compute_s', 'exposed_communication_s', 'bubble_s'];
  return [
    partBars(f.stages.map((s) => ({label: `stage ${s.stage}`, parts: secondsOf(s, time),
                                   note: `${s.layers} layers, peak ${format(s.peak_bytes, 'bytes')}`})),
             {title: 'Pipeline stages', unit: 's'}),
    table([
      {label: 'stage', get: (s) => s.stage, unit: 'count'}, {label: 'layers', get: (s) => s.layers, unit: 'count'},
      ...time.map((name) => ({label: labelOf(name), get: (s) => s[name], unit: 's'})),
      {label: 'peak memory', get: (s) => s.peak_bytes, unit: 'bytes'}], f.stages, {}),
  ];
}

/** Text generation, and servers. */
export function viewGeneration(f, {command}) {
  const under = f.serving ? f.serving.steady ?? f.serving.all : null;
  return [
    headline({
      title: `${f.model} on ${f.gpus > 1 ? `${f.gpus} × ` : ''}${gpuOf(f)}`,
      subtitle: `${f.software}, prompt ${format(f.prompt)}, output ${format(f.output)} tokens, ` +
          (f.serving ? loadText(f.serving) : `batch ${format(f.batch)}`) + `, ${f.dtype}, cache ${f.kv_dtype}`,
      answer: f, figures: under ? serverFigures(f, under) : batchFigures(f),
    }),
    under ? serverSection(f.serving) : null,
    course(f),
    stepSection(f.prefill, f.roofs, 'The prefill step'),
    stepSection(f.decode, f.roofs, 'The decode step in the middle of the output'),
    f.vision?.step ? stepSection(f.vision.step, f.roofs, 'The vision tower') : null,
    memorySection(f.memory),
    f.cache_pool ? section('The cache of the server', anyRecord(f.cache_pool)) : null,
    f.drafts ? section('Speculative decoding', anyRecord(f.drafts)) : null,
    section('The model', anyRecord(Object.fromEntries(
        ['parameters', 'active_parameters', 'flops_per_token', 'kv_bytes_per_token', 'window_bytes_per_token',
         'window_tokens', 'state_bytes_per_sequence'].map((name) => [name, f[name]])))),
    optionsSection(f, command),
  ];
}

const ends = (time) => ({low: time.low_s, high: time.high_s});

function loadText(serving) {
  if (serving.rate) return `${format(serving.rate)} requests/s`;
  if (serving.concurrency) return `${format(serving.concurrency)} clients`;
  return 'requests of a file';
}

function batchFigures(f) {
  return [
    figure('time to first token', f.time_to_first_token.seconds, 's', ends(f.time_to_first_token)),
    figure('time per output token', f.time_per_output_token.seconds, 's', ends(f.time_per_output_token)),
    figure('whole request', f.request.seconds, 's', ends(f.request)),
    figure('throughput', f.tokens_per_s, 'tokens/s', {note: 'written'}),
    memoryFigure(f.memory),
  ];
}

function serverFigures(f, under) {
  const p99 = (d) => [d.p99.seconds, 's', ends(d.p99)];
  return [
    figure('time to first token, p99', ...p99(under.time_to_first_token)),
    figure('time per output token, p99', ...p99(under.time_per_output_token)),
    figure('end to end, p99', ...p99(under.end_to_end)),
    figure('throughput', under.output_tokens_per_s, 'tokens/s', {note: `${format(under.requests_per_s)} requests/s`}),
    figure('goodput', f.serving.goodput_requests_per_s, 'requests/s', {note: 'requests that meet the limits'}),
    figure('the server', f.serving.keeps_up ? 'keeps up' : 'does not keep up', '', {good: f.serving.keeps_up}),
    memoryFigure(f.memory),
  ];
}

function serverSection(serving) {
  const under = serving.steady ?? serving.all;
  const rows = ['time_to_first_token', 'time_per_output_token', 'end_to_end'];
  const limits = {time_to_first_token: serving.ttft_s, time_per_output_token: serving.tpot_s};
  const charts = rows.map((name) => bars(
      ['mean', 'median', 'p99'].map((kind) => ({label: kind, value: under[name][kind].seconds, ...ends(under[name][kind])})),
      {title: `${labelOf(name)[0].toUpperCase()}${labelOf(name).slice(1)} of requests`, unit: 's',
       limit: limits[name] ? {value: limits[name], label: 'limit'} : undefined}));
  return section('The server under load', charts,
                 el('p', {class: 'note'}, serving.steady
                     ? `Of ${format(under.requests)} requests in the steady part: without the first and the last ${format(serving.most_in_flight)}.`
                     : `Of all ${format(under.requests)} requests: too few for a steady part.`),
                 el('details', null, el('summary', null, 'All numbers of the server'), anyRecord(serving)));
}

function course(f) {
  if (!f.course || f.course.length < 2) return null;
  const points = f.course.map((p) => ({x: p.kv_tokens, y: p.seconds, low: p.low_s, high: p.high_s}));
  return section('A decode step as the cache grows', lines([{name: 'decode step', points}], {
    title: 'Time of a decode step by the length of the cache', height: 240,
    x: {label: 'tokens in the cache of each sequence', unit: 'count', zero: false}, y: {label: 'time', unit: 's'}}));
}

function stepSection(step, roofs, title) {
  if (!step || !step.kernels || step.kernels.length === 0) return null;
  const limits = Object.entries(step.limits ?? {}).map(([name, value]) => ({name, value}));
  return section(title,
                 el('p', null, formatInterval(step.latency_s, step.low_s, step.high_s, 's'),
                    step.host_wait_s > 1e-6 ? `; the GPU waits ${format(step.host_wait_s, 's')} for the host` : ''),
                 limits.length > 0 ? partBars([{label: '', parts: limits}], {title: 'What limits its kernels, by their time', unit: 'share'}) : null,
                 kernelBars(step.kernels, 'The kernels that take longest'),
                 kernelRoofline(step.kernels, roofs, 'Kernels and the roofs of the GPU'),
                 el('details', null, el('summary', null, `All ${step.kernels.length} kinds of kernels`), kernelTable(step.kernels, 'Kernels')));
}

/** A forward pass on an accelerator. */
export function viewAccelerator(f, {command}) {
  const busy = f.layers.filter((l) => l.cycles > 0).sort((a, b) => b.cycles - a.cycles);
  return [
    headline({
      title: `${f.model} on ${gpuOf(f)}`, subtitle: `${f.dataflow}, ${f.dtype}, batch ${format(f.batch)}`, answer: f,
      figures: [
        figure('time of a pass', f.latency_s, 's', {low: f.latency_low_s, high: f.latency_high_s}),
        figure('cycles', f.cycles, 'count'), figure('use of the multipliers', f.utilization_ratio, 'share'),
        figure('multiplications', f.macs, 'parameters'), figure('energy', f.energy_j, 'J'),
        figure('on the chip', f.on_chip_bytes, 'bytes'),
      ],
    }),
    section('Where the time goes',
            bars(busy.slice(0, 16).map((l) => ({
              label: l.name, value: l.cycles, low: l.low_cycles, high: l.high_cycles,
              note: [`${l.count} such layers`, `${l.op}, limited by ${l.bound || 'nothing'}`, l.sizes, l.mapping]})),
                 {title: 'Cycles of one layer, the longest first', unit: 'count'}),
            el('details', null, el('summary', null, `All ${f.layers.length} layers`), anyRecord({layers: f.layers}))),
    section('The description', anyRecord({parameters: f.parameters})),
    optionsSection(f, command),
  ];
}

const MEMORY_PARTS = ['weights', 'optimizer', 'gradients', 'activations', 'temporaries', 'loss', 'inputs', 'cache'];

/** Memory over one pass or training step. */
export function viewMemory(m, {command}) {
  const overhead = m.workspace_bytes + m.framework_bytes;  // where the line of the limit is drawn
  const steps = m.timeline.map((t) => ({
    label: `${t.phase}: ${t.segment || t.node}${t.repetition > 0 ? ` ${t.repetition}` : ''}`,
    note: [`${format(t.bytes, 'bytes')} at ${t.node}`],
    values: MEMORY_PARTS.map((name) => t.parts[`${name}_bytes`] ?? 0),
  }));
  return [
    headline({
      title: `Memory of ${m.model} on ${m.gpu}`, subtitle: `${m.mode}, batch ${format(m.batch)}, ${format(m.seq)} tokens, ${m.dtype}`,
      answer: m, figures: [
        figure('in use at most', m.allocated_bytes, 'bytes', {note: 'max_memory_allocated'}),
        figure('reserved at most', m.reserved_high_bytes, 'bytes', {note: `at least ${format(m.reserved_low_bytes, 'bytes')}`}),
        figure('the GPU', m.device_bytes, 'bytes', {note: m.fits ? 'it fits' : 'it does not fit', good: m.fits}),
      ],
    }),
    section('Memory over time', stacked(steps, {
      title: 'Tensors in memory, at the highest operator of each repetition', names: MEMORY_PARTS, unit: 'bytes',
      xLabel: 'parts of the model, in the order in which they run', yLabel: 'bytes in memory',
      limit: {value: m.device_bytes - overhead, label: 'what the framework leaves'}})),
    m.peak ? section('At the peak', el('p', null, `${m.peak.phase}, ${m.peak.node}`),
            partBars([{label: '', parts: partsOf(m.peak.parts, MEMORY_PARTS)}], {title: 'What is in memory', unit: 'bytes'}),
            table([{label: 'tensors', get: (h) => h.name}, {label: 'for', get: (h) => h.part},
                   {label: 'size', get: (h) => h.bytes, unit: 'bytes'}, {label: 'count', get: (h) => h.count, unit: 'count'}],
                  m.holders, {caption: 'Tensors at the peak, those of one name together', first: 15})) : null,
    optionsSection(m, command),
  ];
}

/** The kernels of one operator, explained. */
export function viewKernel(a, {command}) {
  return [
    headline({
      title: `${a.kernels[0]?.op ?? 'kernel'} on ${a.gpu}`, subtitle: `${a.software}, clock ${a.clocks}`, answer: a,
      figures: a.kernels.map((k) => figure(k.op, k.latency_s, 's', {low: k.low_s, high: k.high_s, note: shapeText(k.shape)})),
    }),
    section('Below the roofs', kernelRoofline(a.kernels, a.roofs, 'Kernels and the roofs of the GPU'), kernelTable(a.kernels, 'Kernels')),
    ...a.explanations.map((why, i) => section(`Why ${a.kernels[i]?.op ?? why.name} takes its time`, lawBars(why), anyRecord(why))),
    optionsSection(a, command),
  ];
}

function lawBars(why) {
  const names = ['roofline_s', 'law_s', 'start_s', 'memory_s', 'compute_s', 'power_s'];
  const rows = names.filter((name) => typeof why[name] === 'number').map((name) => ({label: labelOf(name), value: why[name]}));
  return rows.length > 0 ? bars(rows, {title: 'The roofline, and the law with its terms', unit: 's'}) : null;
}

/** One collective. */
export function viewCollective(c, {command}) {
  return [
    headline({
      title: `${c.collective} of ${format(c.bytes, 'bytes')} on ${c.ranks} GPUs`, subtitle: `${c.cluster}, ${c.algorithm}, ${c.dtype}`, answer: c,
      figures: [figure('time', c.latency_s, 's', {low: c.low_s, high: c.high_s}),
                figure('bus bandwidth', c.bus_bytes_per_s, 'bytes/s', {note: 'as nccl-tests define it'})],
    }),
    section('Parts of the time', partBars([{label: '', parts: [{name: 'start-up and steps', value: c.start_s}, {name: 'transfer', value: c.transfer_s}]}],
                                          {title: 'Start-up and transfer', unit: 's'})),
    section('All numbers', anyRecord(c, ['warnings', 'warning_codes'])),
    optionsSection(c, command),
  ];
}
