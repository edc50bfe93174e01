// Details of a forecast: memory over time, one kernel, one collective.

import {bars, stacked} from './charts.js';
import {el} from './dom.js';
import {format, labelOf} from './format.js';
import {kernelRoofline, kernelTable, shapeText} from './kernels.js';
import {
  anyRecord, figure, headline, MEMORY_PARTS, optionsSection, partsBar, partsOf, section,
} from './parts.js';
import {numbers, table, words} from './table.js';

/** Memory over one pass or training step. */
export function viewMemory(m, {command}) {
  return [
    headline({
      title: `Memory of ${m.model} on ${m.gpu}`,
      subtitle: `${m.mode}, batch ${format(m.batch)}, ${format(m.seq)} tokens, ${m.dtype}`,
      answer: m,
      figures: [
        figure('in use at most', m.allocated_bytes, 'bytes', {note: 'max_memory_allocated'}),
        figure('reserved at most', m.reserved_high_bytes, 'bytes',
               {note: `at least ${format(m.reserved_low_bytes, 'bytes')}`}),
        figure('the GPU', m.device_bytes, 'bytes',
               {note: m.fits ? 'it fits' : 'it does not fit', good: m.fits}),
      ],
    }),
    section('Memory over time', overTime(m)),
    m.peak ? atPeak(m) : null,
    optionsSection(m, command),
  ];
}

function overTime(m) {
  const step = (point) => ({
    label: [point.phase, point.segment || point.node, point.repetition || ''].join(' ').trim(),
    note: [`${format(point.bytes, 'bytes')} at ${point.node}`],
    values: MEMORY_PARTS.map((name) => point.parts[`${name}_bytes`] ?? 0),
  });
  return stacked(m.timeline.map(step), {
    title: 'Tensors in memory, at the highest operator of each repetition',
    names: MEMORY_PARTS,
    unit: 'bytes',
    xLabel: 'parts of the model, in the order in which they run',
    yLabel: 'bytes in memory',
    // Where the line is drawn: tensors share the device with these.
    limit: {
      value: m.device_bytes - m.workspace_bytes - m.framework_bytes,
      label: 'what the framework leaves',
    },
  });
}

function atPeak(m) {
  return section(
      'At the peak', el('p', null, `${m.peak.phase}, ${m.peak.node}`),
      partsBar(partsOf(m.peak.parts, MEMORY_PARTS), {title: 'What is in memory', unit: 'bytes'}),
      table([
        words('tensors', (holder) => holder.name),
        words('for', (holder) => holder.part),
        numbers('size', 'bytes', (holder) => holder.bytes),
        numbers('count', 'count', (holder) => holder.count),
      ], m.holders, {caption: 'Tensors at the peak, those of one name together', first: 15}));
}

/** The kernels of one operator, explained. */
export function viewKernel(a, {command}) {
  const time = (k) =>
      figure(k.op, k.latency_s, 's', {low: k.low_s, high: k.high_s, note: shapeText(k.shape)});
  const why = (explanation, i) => section(
      `Why ${a.kernels[i]?.op ?? explanation.name} takes its time`, lawBars(explanation),
      anyRecord(explanation));
  return [
    headline({
      title: `${a.kernels[0]?.op ?? 'kernel'} on ${a.gpu}`,
      subtitle: `${a.software}, clock ${a.clocks}`,
      answer: a,
      figures: a.kernels.map(time),
    }),
    section('Below the roofs',
            kernelRoofline(a.kernels, a.roofs, 'Kernels and the roofs of the GPU'),
            kernelTable(a.kernels, 'Kernels')),
    ...a.explanations.map(why),
    optionsSection(a, command),
  ];
}

const LAW_FIELDS = ['roofline_s', 'law_s', 'start_s', 'memory_s', 'compute_s', 'power_s'];

function lawBars(explanation) {
  const rows = LAW_FIELDS.filter((name) => typeof explanation[name] === 'number')
      .map((name) => ({label: labelOf(name), value: explanation[name]}));
  if (rows.length === 0) return null;
  return bars(rows, {title: 'The roofline, and the law with its terms', unit: 's'});
}

/** One collective. */
export function viewCollective(c, {command}) {
  const parts = [
    {name: 'start-up and steps', value: c.start_s}, {name: 'transfer', value: c.transfer_s},
  ];
  return [
    headline({
      title: `${c.collective} of ${format(c.bytes, 'bytes')} on ${c.ranks} GPUs`,
      subtitle: `${c.cluster}, ${c.algorithm}, ${c.dtype}`,
      answer: c,
      figures: [
        figure('time', c.latency_s, 's', {low: c.low_s, high: c.high_s}),
        figure('bus bandwidth', c.bus_bytes_per_s, 'bytes/s', {note: 'as nccl-tests define it'}),
      ],
    }),
    section('Parts of the time', partsBar(parts, {title: 'Start-up and transfer', unit: 's'})),
    section('All numbers', anyRecord(c, ['warnings', 'warning_codes'])),
    optionsSection(c, command),
  ];
}
