// Forecasts against measurements: a scoreboard, worst rows first, with filters; jobs that share a
// GPU; tuning without a search.

import {bars, scatter} from './charts.js';
import {el, freshId} from './dom.js';
import {format} from './format.js';
import {anyRecord, columnsOf, figure, headline, optionsSection, section} from './parts.js';
import {table} from './table.js';

const ANY = '';

/** A list to choose a value of `name` from; '' is any. */
function chooser(label, rows, name, onchange) {
  const values = [...new Set(rows.map((r) => r[name]).filter((v) => v !== undefined && v !== ''))].sort();
  if (values.length < 2) return null;
  const id = freshId('filter');
  return el('label', {for: id}, label, el('select', {id, 'data-field': name, onchange},
      el('option', {value: ANY}, 'all'), values.map((v) => el('option', {value: v}, v))));
}

/** Filters above something that is drawn again with the rows that they leave. */
function filtered(rows, names, draw) {
  const place = el('div');
  const filters = el('div', {class: 'filters'});
  const redraw = () => {
    const wanted = [...filters.querySelectorAll('select')].filter((s) => s.value !== ANY).map((s) => [s.dataset.field, s.value]);
    const left = rows.filter((r) => wanted.every(([name, value]) => String(r[name]) === value));
    place.replaceChildren(...[draw(left)].flat().filter(Boolean));
  };
  filters.append(...Object.entries(names).map(([name, label]) => chooser(label, rows, name, redraw)).filter(Boolean));
  redraw();
  return [filters.children.length > 0 ? filters : null, place];
}

const byError = (rows, name) => [...rows].sort((a, b) => b[name] - a[name]);
const rowName = (r) => [r.op, r.dtype, r.software].filter(Boolean).join(' · ');

/** Errors of kernels and models. */
export function viewEvaluation(e, {command}) {
  return [
    headline({title: 'Forecasts against measurements', answer: e, figures: [
      figure('kinds of kernels', e.rows.length, 'count', {note: 'GPU, operator, dtype and software'}), figure('models', e.models.length, 'count')]}),
    e.models.length > 0 ? section('Models', filtered(e.models, {gpu: 'GPU', model: 'model', mode: 'mode', dtype: 'dtype'}, modelViews)) : null,
    e.rows.length > 0 ? section('Kernels', filtered(e.rows, {gpu: 'GPU', op: 'operator', dtype: 'dtype', software: 'software'}, kernelViews)) : null,
    (e.points ?? []).length > 0 ? section('Measured kernels of the largest errors',
        el('p', {class: 'note'}, e.points_left_out > 0 ? `The ${format(e.points.length)} worst; ${format(e.points_left_out)} better ones are left out (--points lists more).` : 'All of them.'),
        filtered(e.points, {gpu: 'GPU', op: 'operator', dtype: 'dtype', software: 'software'}, pointViews)) : null,
    (e.unmatched ?? []).length > 0 ? section('Not evaluated', el('ul', {class: 'note'}, e.unmatched.slice(0, 50).map((u) => el('li', null, u))),
        e.unmatched.length > 50 ? el('p', {class: 'note'}, `and ${format(e.unmatched.length - 50)} more`) : null) : null,
    optionsSection({}, command),
  ];
}

/** Forecast against measured, on the line they agree. */
function agreement(rows, label, title) {
  return scatter(rows.map((r) => ({x: r.measured_s, y: r.forecast_s, low: r.low_s, high: r.high_s, label: label(r),
                                   note: [`error ${format(r.error_percent, '%')}`]})),
                 {title, diagonal: true, x: {label: 'measured', unit: 's', log: true}, y: {label: 'forecast', unit: 's', log: true}, height: 420});
}

function modelViews(models) {
  const worst = byError(models, 'error_percent');
  const label = (m) => `${m.model} ${m.mode}, batch ${m.batch}, ${m.seq} tokens, ${m.dtype}${m.option ? `, ${m.option}` : ''} on ${m.gpu}`;
  return [
    agreement(worst, label, `${format(models.length)} models: on the line the forecast is right`),
    table([
      {label: 'GPU', get: (m) => m.gpu}, {label: 'model', get: (m) => m.model}, {label: 'mode', get: (m) => m.mode}, {label: 'batch', get: (m) => m.batch, unit: 'count'},
      {label: 'tokens', get: (m) => m.seq, unit: 'count'}, {label: 'dtype', get: (m) => m.dtype}, {label: 'option', get: (m) => m.option},
      {label: 'measured', get: (m) => m.measured_s, unit: 's'}, {label: 'forecast', get: (m) => m.forecast_s, unit: 's'},
      {label: '80 % interval', get: (m) => m.low_s, unit: 's', show: (m) => `${format(m.low_s, 's')} to ${format(m.high_s, 's')}`},
      {label: 'error', get: (m) => m.error_percent, unit: '%'}], worst, {first: 20, sort: 10, caption: 'Models, the worst first'}),
  ];
}

function kernelViews(rows) {
  const most = 20;
  const worst = byError(rows, 'mape_percent');
  return [
    bars(worst.slice(0, most).map((r) => ({label: `${r.gpu}: ${rowName(r)}`, value: r.mape_percent,
      note: [`median ${format(r.median_percent, '%')}, 90 % are below ${format(r.p90_percent, '%')}`, `${format(r.count)} measurements`,
             `forecast / measured ${format(r.bias_ratio, '')}`, `${format(r.coverage_percent, '%')} inside the 80 % interval`]})),
         {title: `Mean error${rows.length > most ? `: the ${most} worst of ${rows.length}` : ''}`, unit: '%'}),
    table([
      {label: 'GPU', get: (r) => r.gpu}, {label: 'operator', get: (r) => r.op}, {label: 'dtype', get: (r) => r.dtype}, {label: 'software', get: (r) => r.software},
      {label: 'rows', get: (r) => r.count, unit: 'count'}, {label: 'mean error', get: (r) => r.mape_percent, unit: '%'}, {label: 'median', get: (r) => r.median_percent, unit: '%'},
      {label: '90 % are below', get: (r) => r.p90_percent, unit: '%'}, {label: 'forecast / measured', get: (r) => r.bias_ratio, unit: ''},
      {label: 'inside 80 % interval', get: (r) => r.coverage_percent, unit: '%'}], worst, {first: 20, sort: 5, caption: 'Kernels, the worst first'}),
  ];
}

function pointViews(points) {
  const most = 400;  // of the chart: more would be slow and hide each other
  return [
    agreement(points.slice(0, most), (p) => `${rowName(p)} on ${p.gpu}: ${p.sizes}`,
              `Forecast against measured${points.length > most ? `: the ${most} worst` : ''}`),
    table([
      {label: 'GPU', get: (p) => p.gpu}, {label: 'operator', get: (p) => p.op}, {label: 'dtype', get: (p) => p.dtype}, {label: 'software', get: (p) => p.software},
      {label: 'measured', get: (p) => p.measured_s, unit: 's'}, {label: 'forecast', get: (p) => p.forecast_s, unit: 's'},
      {label: 'error', get: (p) => p.error_percent, unit: '%'}, {label: 'sizes', get: (p) => p.sizes}], points, {first: 20, sort: 6, caption: 'Measured kernels, the worst first'}),
  ];
}

/** Jobs that share a GPU, against measurements. */
export function viewSharingEvaluation(e, {command}) {
  const name = (p) => [p.job, p.partner ? `beside ${p.partner}` : null, p.slice ? `on ${p.slice}` : null].filter(Boolean).join(' ');
  const draw = (points) => scatter(points.map((p) => ({x: p.measured, y: p.forecast, low: p.forecast_low, high: p.forecast_high, label: name(p), note: [p.gpu]})),
                                   {title: 'Relative speeds: on the line the forecast is right', diagonal: true, height: 420, x: {label: 'measured', unit: 'share'}, y: {label: 'forecast', unit: 'share'}});
  return [
    headline({title: 'Jobs that share a GPU, against measurements', subtitle: e.file, answer: e,
              figures: e.errors.slice(0, 4).map((r) => figure(`mean error, ${r.gpu}${r.slice ? ` ${r.slice}` : ''}`, r.mape_percent, '%', {note: `${format(r.count)} rows, ${r.how}`}))}),
    section('Relative speeds', filtered(e.points, {gpu: 'GPU', job: 'job', slice: 'slice'}, (points) => [draw(points), table(columnsOf(points), points, {first: 20})])),
    section('Errors', table(columnsOf(e.errors), e.errors, {})),
    optionsSection({}, command),
  ];
}

/** Solvers of convolutions. */
export function viewTuning(t, {command}) {
  return [
    headline({title: 'Kernels without a search', answer: t, figures: t.problems.slice(0, 1).filter((p) => p.solvers.length > 0).map((p) => figure(p.solvers[0].name, p.solvers[0].latency_s, 's', {low: p.solvers[0].low_s, high: p.solvers[0].high_s}))}),
    ...t.problems.map((p) => section(p.name ? `${p.name}: ${p.problem}` : p.problem, el('p', {class: 'note'}, `${p.gpu}, key ${p.key}`),
      bars([...p.solvers, ...(p.fallback ? [{...p.fallback, name: `without a database: ${p.fallback.name}`}] : [])].map((s) => ({label: s.name, value: s.latency_s, low: s.low_s, high: s.high_s,
        note: [s.algorithm, `a search lists it with ${format(s.listed_probability, 'share')}`, ...s.parameters.slice(0, 3).map((x) => x.text)].filter(Boolean)})), {title: 'Time of the solvers, the best first', unit: 's'}),
      table([{label: 'solver', get: (s) => s.name}, {label: 'algorithm', get: (s) => s.algorithm}, {label: 'time', get: (s) => s.latency_s, unit: 's'},
             {label: 'listed with', get: (s) => s.listed_probability, unit: 'share'}, {label: 'parameters', get: (s) => s.parameters[0]?.text ?? ''}], p.solvers, {}))),
    optionsSection({}, command),
  ];
}

/** Kernels of matrix products. */
export function viewProducts(t, {command}) {
  return [
    headline({title: 'Kernels of matrix products without a search', answer: t, figures: []}),
    ...t.products.map((p) => section(p.problem, el('p', {class: 'note'}, `${p.gpu}, from tuned sizes of ${p.measured_gpu}`),
      bars(p.kernels.map((k) => ({label: `${k.tile_m} × ${k.tile_n}, depth ${k.depth_u}, split ${k.split}, ${k.matrix_instruction}`, value: k.probability})), {title: 'Probability that it is the fastest', unit: 'share'}),
      Object.entries(p.parts).map(([name, values]) => bars(values.map((v) => ({label: v.value, value: v.probability, color: 2})), {title: name.replace(/_/g, ' '), unit: 'share'})))),
    optionsSection({}, command),
  ];
}

/** Anything else: all fields and lists. */
export function viewAny(title, answer, {command}) {
  return [headline({title, answer, figures: []}), section('Results', anyRecord(answer, ['warnings', 'warning_codes', 'assumptions', 'options'])), optionsSection(answer, command)];
}
