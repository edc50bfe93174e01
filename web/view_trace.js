// A trace of PyTorch's profiler: the GPU's time, operators beside what they should take, and what
// they take there.

import {bars} from './charts.js';
import {format} from './format.js';
import {figure, headline, optionsSection, partsBar, section} from './parts.js';
import {numbers, ranges, table, words} from './table.js';

const CHARTED = 6;  // operators with bars
const WHY = {
  host: 'idle: the host launches too late',
  synchronization: 'idle: the host waited for the GPU',
  'between kernels': 'idle: between kernels',
  unknown: 'idle: not known why',
};

const shortName = (op) => op.name.replace('aten::', '');
const sizedName = (op) => `${shortName(op)} ${op.sizes}`.trim();

/** What a trace shows. */
export function viewTrace(t, {command}) {
  const there = t.carried;
  return [
    headline({
      title: `${t.file} on ${t.gpu_name || t.traced_gpu || 'no GPU'}`,
      subtitle: there ? `beside ${there.gpu_name || 'the other GPU'}; host: ${there.host}` : '',
      answer: t,
      figures: [
        figure('span', t.span_s, 's', {note: `busy ${format(t.busy_s, 's')}`}),
        figure('kernels', t.kernels_s, 's', {note: `${format(t.kernels)} of them`}),
        there ? figure('span there', there.span_s, 's',
                       {low: there.span_low_s, high: there.span_high_s, note: changesOf(there)}) :
                null,
        there ? figure('kernels there', there.kernels_s, 's',
                       {low: there.kernels_low_s, high: there.kernels_high_s}) :
                null,
        t.gain_s > 0 ? figure('would save', t.gain_s, 's', {note: 'if what is slow took its forecast'}) :
                       null,
        t.memory_peak_bytes > 0 ? figure('memory', t.memory_peak_bytes, 'bytes', {note: 'of tensors'}) :
                                  null,
      ],
    }),
    section('The GPU', partsBar(spanParts(t), {title: 'What it did over the span', unit: 's'})),
    section('Operators', operatorBars(t), operatorTable(t)),
    section('Slower than it should be', slowTable(t)),
    optionsSection(t, command),
  ];
}

function changesOf(there) {
  const changes = [
    there.batch > 0 ? `batch ${there.batch} in place of ${there.traced_batch}` : '',
    there.dtype ? `${there.dtype} in place of ${there.traced_dtype}` : '',
  ];
  return changes.filter(Boolean).join(', ');
}

function spanParts(t) {
  return [
    {name: 'busy', value: t.busy_s},
    ...t.idle.map((idle) => ({name: WHY[idle.why] ?? idle.why, value: idle.seconds})),
  ];
}

function operatorBars(t) {
  const rows = t.operators.slice(0, CHARTED).flatMap((op) => [
    {label: sizedName(op), value: op.measured_s, note: [`measured, ${format(op.calls)} calls`, op.kernel]},
    op.forecast ? {
      label: 'should take', value: op.forecast.seconds, low: op.forecast.low_s,
      high: op.forecast.high_s, note: op.predictor, muted: true,
    } : null,
    op.carried ? {
      label: 'there', value: op.carried.seconds, low: op.carried.low_s, high: op.carried.high_s,
      note: t.carried?.gpu_name, muted: true,
    } : null,
  ]);
  return bars(rows.filter(Boolean), {title: 'One call of those that take longest', unit: 's'});
}

function operatorTable(t) {
  const columns = [
    words('operator', shortName), words('sizes', (op) => op.sizes), words('dtype', (op) => op.dtype),
    numbers('calls', 'count', (op) => op.calls),
    numbers('each', 's', (op) => op.measured_s, 'kernels of one call, measured'),
    ranges('should take', 's', (op) => [op.forecast?.low_s, op.forecast?.high_s], '80 % interval'),
    numbers('share', 'share', (op) => op.share, 'of the time of all kernels'),
  ];
  if (t.carried) columns.splice(6, 0, numbers('there', 's', (op) => op.carried?.seconds));
  return table(columns, t.operators, {caption: 'Operators, the one that takes longest first'});
}

function slowTable(t) {
  const slow = t.operators.filter((op) => op.slow);
  if (slow.length === 0) return null;
  return table([
    words('operator', sizedName),
    numbers('each', 's', (op) => op.measured_s),
    numbers('times its forecast', 'count', (op) => op.ratio),
    numbers('would save', 's', (op) => op.gain_s, 'all calls, at their forecast'),
    words('why', (op) => op.reason),
  ], slow, {caption: 'Measured above the interval of the forecast', first: 10, sort: 3});
}
