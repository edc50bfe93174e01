// Forecasts against measurements: a scoreboard, worst rows first, with filters; jobs that share a
// GPU; servers under load.

import {bars, scatter} from './charts.js';
import {el, freshId} from './dom.js';
import {format} from './format.js';
import {columnsOf, figure, headline, optionsSection, section} from './parts.js';
import {numbers, ranges, table, words} from './table.js';

// ---- Filters ----------------------------------------------------------------------------------

const ANY = '';

/** A list to choose a value of a field from; null where there is no choice. */
function chooser(label, rows, field, onchange) {
  const values = [...new Set(rows.map((row) => row[field]).filter(Boolean))].sort();
  if (values.length < 2) return null;
  const id = freshId('filter');
  return el('label', {for: id}, label, el(
      'select', {id, 'data-field': field, onchange}, el('option', {value: ANY}, 'all'),
      values.map((value) => el('option', {value}, value))));
}

/**
 * Lists to choose from, above what is drawn of the rows that they leave.
 * @param {object[]} rows
 * @param {Object<string, string>} fields  labels of the lists, by the fields of rows
 * @param {(rows: object[]) => (Node|null)[]} draw
 */
function filtered(rows, fields, draw) {
  const place = el('div'), filters = el('div', {class: 'filters'});
  const redraw = () => {
    const chosen = [...filters.querySelectorAll('select')].filter((list) => list.value !== ANY);
    const left = rows.filter(
        (row) => chosen.every((list) => String(row[list.dataset.field]) === list.value));
    place.replaceChildren(...draw(left).filter(Boolean));
  };
  const lists = Object.entries(fields).map(
      ([field, label]) => chooser(label, rows, field, redraw)).filter(Boolean);
  filters.append(...lists);
  redraw();
  return [lists.length > 0 ? filters : null, place];
}

const KERNEL_FILTERS = {gpu: 'GPU', op: 'operator', dtype: 'dtype', software: 'software'};
const MODEL_FILTERS = {gpu: 'GPU', model: 'model', mode: 'mode', dtype: 'dtype'};

// ---- Kernels and models -----------------------------------------------------------------------

const byError = (rows, name) => [...rows].sort((a, b) => b[name] - a[name]);
const kernelOf = (row) => [row.op, row.dtype, row.software].filter(Boolean).join(' · ');

/** Errors of kernels and models. */
export function viewEvaluation(e, {command}) {
  const points = e.points ?? [];
  return [
    headline({
      title: 'Forecasts against measurements',
      answer: e,
      figures: [
        figure('kinds of kernels', e.rows.length, 'count',
               {note: 'GPU, operator, dtype and software'}),
        figure('models', e.models.length, 'count'),
      ],
    }),
    e.models.length > 0 ? section('Models', filtered(e.models, MODEL_FILTERS, modelViews)) : null,
    e.rows.length > 0 ? section('Kernels', filtered(e.rows, KERNEL_FILTERS, kernelViews)) : null,
    points.length === 0 ? null : section(
        'Measured kernels of the largest errors', el('p', {class: 'note'}, leftOutText(e)),
        filtered(points, KERNEL_FILTERS, pointViews)),
    notEvaluated(e.unmatched ?? []),
    optionsSection({}, command),
  ];
}

function leftOutText(e) {
  if (!(e.points_left_out > 0)) return 'All of them.';
  return `The ${format(e.points.length)} worst; ${format(e.points_left_out)} better ones are ` +
      'left out (--points lists more).';
}

function notEvaluated(reasons) {
  const most = 50;
  if (reasons.length === 0) return null;
  const rest = reasons.length > most ? `and ${format(reasons.length - most)} more` : null;
  return section('Not evaluated', el('ul', {class: 'note'}, [...reasons.slice(0, most), rest]
      .filter(Boolean).map((text) => el('li', null, text))));
}

/** Forecast against measured; on the line they agree. `label` names a row. */
function agreement(rows, label, title) {
  const point = (row) => ({
    x: row.measured_s,
    y: row.forecast_s,
    low: row.low_s,
    high: row.high_s,
    label: label(row),
    note: [`error ${format(row.error_percent, '%')}`],
  });
  return scatter(rows.map(point), {
    title,
    diagonal: true,
    height: 420,
    x: {label: 'measured', unit: 's', log: true},
    y: {label: 'forecast', unit: 's', log: true},
  });
}

const modelOf = (m) => [
  `${m.model} ${m.mode} on ${m.gpu}`, `batch ${m.batch}`, m.seq ? `${m.seq} tokens` : null, m.dtype,
  m.option,
].filter(Boolean).join(', ');

function modelViews(models) {
  const worst = byError(models, 'error_percent');
  const columns = [
    words('GPU', (m) => m.gpu),
    words('model', (m) => m.model),
    words('mode', (m) => m.mode),
    numbers('batch', 'count', (m) => m.batch),
    numbers('tokens', 'count', (m) => m.seq || null),
    words('dtype', (m) => m.dtype),
    words('option', (m) => m.option),
    numbers('error', '%', (m) => m.error_percent),
    numbers('measured', 's', (m) => m.measured_s),
    numbers('forecast', 's', (m) => m.forecast_s),
    ranges('80 % interval', 's', (m) => [m.low_s, m.high_s]),
  ];
  return [
    agreement(worst, modelOf, `${format(models.length)} models: on the line the forecast is right`),
    table(columns, worst, {first: 20, sort: 7, caption: 'Models, the worst first'}),
  ];
}

function kernelViews(rows) {
  const most = 20;
  const worst = byError(rows, 'mape_percent');
  const bar = (row) => ({
    label: `${row.gpu}: ${kernelOf(row)}`,
    value: row.mape_percent,
    note: [
      `median ${format(row.median_percent, '%')}, 90 % are below ${format(row.p90_percent, '%')}`,
      `${format(row.count)} measurements`,
      `forecast / measured ${format(row.bias_ratio, '')}`,
      `${format(row.coverage_percent, '%')} inside the 80 % interval`,
    ],
  });
  const of = rows.length > most ? `: the ${most} worst of ${rows.length}` : '';
  return [
    bars(worst.slice(0, most).map(bar), {title: `Mean error${of}`, unit: '%'}),
    table([
      words('GPU', (row) => row.gpu),
      words('operator', (row) => row.op),
      words('dtype', (row) => row.dtype),
      words('software', (row) => row.software),
      numbers('rows', 'count', (row) => row.count),
      numbers('mean error', '%', (row) => row.mape_percent),
      numbers('median', '%', (row) => row.median_percent),
      numbers('90 % are below', '%', (row) => row.p90_percent),
      numbers('forecast / measured', '', (row) => row.bias_ratio),
      numbers('inside 80 % interval', '%', (row) => row.coverage_percent),
    ], worst, {first: 20, sort: 5, caption: 'Kernels, the worst first'}),
  ];
}

function pointViews(points) {
  const most = 400;  // of the chart: more would hide each other
  const of = points.length > most ? `: the ${most} worst` : '';
  return [
    agreement(points.slice(0, most), (p) => `${kernelOf(p)} on ${p.gpu}: ${p.sizes}`,
              `Forecast against measured${of}; on the line they agree`),
    table([
      words('GPU', (p) => p.gpu),
      words('operator', (p) => p.op),
      words('dtype', (p) => p.dtype),
      words('software', (p) => p.software),
      numbers('measured', 's', (p) => p.measured_s),
      numbers('forecast', 's', (p) => p.forecast_s),
      numbers('error', '%', (p) => p.error_percent),
      words('sizes', (p) => p.sizes),
    ], points, {first: 20, sort: 6, caption: 'Measured kernels, the worst first'}),
  ];
}

// ---- Jobs that share a GPU --------------------------------------------------------------------

/** Jobs that share a GPU, against measurements. */
export function viewSharingEvaluation(e, {command}) {
  const error = (row) => figure(
      `mean error, ${row.gpu}${row.slice ? ` ${row.slice}` : ''}`, row.mape_percent, '%',
      {note: `${format(row.count)} rows, ${row.how}`});
  const filters = {gpu: 'GPU', job: 'job', slice: 'slice'};
  return [
    headline({
      title: 'Jobs that share a GPU, against measurements',
      subtitle: e.file,
      answer: e,
      figures: e.errors.slice(0, 4).map(error),
    }),
    section('Relative speeds', filtered(e.points, filters, speedViews)),
    section('Errors', table(columnsOf(e.errors), e.errors)),
    notEvaluated(e.unmatched ?? []),
    optionsSection({}, command),
  ];
}

function speedViews(points) {
  const name = (p) => p.job + (p.partner ? ` beside ${p.partner}` : '') +
      (p.slice ? ` on ${p.slice}` : '');
  const point = (p) => ({
    x: p.measured, y: p.forecast, low: p.forecast_low, high: p.forecast_high, label: name(p),
    note: [p.gpu],
  });
  return [
    scatter(points.map(point), {
      title: 'Relative speeds: on the line the forecast is right',
      diagonal: true,
      height: 420,
      x: {label: 'measured', unit: 'share'},
      y: {label: 'forecast', unit: 'share'},
    }),
    table(columnsOf(points), points, {first: 20}),
  ];
}

// ---- Servers under load -----------------------------------------------------------------------

const SERVER_FILTERS = {software: 'software', model: 'model', gpu: 'GPU', dtype: 'dtype'};
/** The figures of a server, by the names of their fields. */
const SERVER_FIGURES = {
  tpot: {
    name: 'time per output token', unit: 's', measured: 'tpot_measured_s', forecast: 'tpot_s',
    low: 'tpot_low_s', high: 'tpot_high_s', counts: () => true,
  },
  itl: {
    name: 'time between two tokens', unit: 's', measured: 'itl_measured_s', forecast: 'itl_s',
    low: 'itl_low_s', high: 'itl_high_s', counts: () => true,
  },
  ttft: {
    name: 'time to first token', unit: 's', measured: 'ttft_measured_s', forecast: 'ttft_s',
    low: 'ttft_low_s', high: 'ttft_high_s', counts: (p) => !p.ttft_use || p.ttft_use === 'yes',
  },
  tokens_per_s_per_gpu: {
    name: 'output tokens of a GPU', unit: 'tokens/s', measured: 'tokens_per_s_per_gpu_measured',
    forecast: 'tokens_per_s_per_gpu', low: 'tokens_per_s_per_gpu_low',
    high: 'tokens_per_s_per_gpu_high', counts: () => true,
  },
};

/** Servers under load, against measurements. */
export function viewServerEvaluation(e, {command}) {
  const all = e.errors.filter((row) => !row.software && !row.gpu);
  const error = (row) => figure(
      `median error, ${SERVER_FIGURES[row.metric].name}`, row.median_percent, '%',
      {note: `mean ${format(row.mape_percent, '%')}, ${format(row.count)} rows`});
  return [
    headline({
      title: 'Servers, against measurements',
      subtitle: e.file,
      answer: e,
      figures: all.map(error),
    }),
    section('Forecast against measured', filtered(e.points, SERVER_FILTERS, serverViews)),
    section('Errors', table(columnsOf(e.errors), e.errors)),
    notEvaluated(e.unmatched ?? []),
    optionsSection({}, command),
  ];
}

const serverName = (p) => [
  `${p.model} ${p.dtype}`, p.software, `${p.gpus} × ${p.gpu}`, `${p.clients} clients`,
  `prompt ${p.prompt}`, `output ${p.output}`,
].join(', ');

function serverViews(points) {
  const figures = Object.values(SERVER_FIGURES).filter(
      (what) => points.some((p) => isCompared(p, what)));
  const columns = [
    words('software', (p) => [p.software, p.version].filter(Boolean).join(' ')),
    words('model', (p) => p.model),
    words('dtype', (p) => p.dtype),
    words('GPUs', (p) => `${p.gpus} × ${p.gpu}`),
    numbers('clients', 'count', (p) => p.clients),
    words('prompt', (p) => p.prompt),
    words('output', (p) => p.output),
    ...figures.flatMap((what) => [
      numbers(`${what.name}, measured`, what.unit, (p) => p[what.measured]),
      numbers('forecast', what.unit, (p) => p[what.forecast]),
    ]),
  ];
  return [
    ...figures.map((what) => serverScatter(points.filter((p) => isCompared(p, what)), what)),
    table(columns, points, {first: 20, caption: 'Servers'}),
  ];
}

const isCompared = (p, what) => what.counts(p) && p[what.measured] > 0 && p[what.forecast] > 0;

function serverScatter(points, what) {
  const point = (p) => ({
    x: p[what.measured], y: p[what.forecast], low: p[what.low], high: p[what.high],
    label: serverName(p), note: [],
  });
  return scatter(points.map(point), {
    title: `${what.name[0].toUpperCase()}${what.name.slice(1)}: on the line the forecast is right`,
    diagonal: true,
    height: 420,
    x: {label: 'measured', unit: what.unit, log: true},
    y: {label: 'forecast', unit: what.unit, log: true},
  });
}
