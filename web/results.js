// The requests that a state makes, each a part of the results.

import {askJson} from './ask.js';
import {lines} from './charts.js';
import {el} from './dom.js';
import {modelOf} from './scenarios.js';
import {numbers, table, words} from './table.js';

/**
 * @typedef {object} Part One panel of the results.
 * @property {string} id
 * @property {string} title
 * @property {string} [question] of the service, if its answer is shown as it is
 * @property {object} [body] its options
 * @property {(signal: AbortSignal) => Promise<HTMLElement>} [make] what is shown otherwise
 * @property {(progress: string) => void} [slow] of an answer that takes long: says how far it is
 * @property {HTMLElement} [above] what is chosen for this panel
 */

/** The request whose details are shown. */
function detailBody(state, settings) {
  const body = {model: modelOf(state), gpu: state.focus, ...settings};
  if (state.scenario === 'server') body.rate = Number(loadOf(state)) || loadOf(state);
  return body;
}

export function ratesOf(state) {
  return state.rates.split(',').map((rate) => rate.trim()).filter(Boolean);
}

/** The load whose details are shown: the chosen one, else the first. */
export function loadOf(state) {
  const rates = ratesOf(state);
  return rates.includes(state.load) ? state.load : rates[0] ?? '';
}

function comparisonPart(state, settings) {
  return {id: 'gpus', title: 'Across GPUs', question: 'compare_gpus',
    body: {model: modelOf(state), gpus: state.gpus, ...settings}};
}

/** A forecast with all its options as one side of a comparison. Lists are words there. */
export function sideOf(body) {
  return Object.fromEntries(Object.entries(body).map(
      ([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]));
}

function pinnedPart(state, settings) {
  return {id: 'pinned', title: 'Side by side: A as it was, B as it is', question: 'compare',
    body: {a: JSON.parse(state.pinned), b: sideOf(detailBody(state, settings))}};
}

/** @returns {Part[]} */
export function partsOf(state, settings) {
  const detail = {id: 'detail', title: 'In detail', question: 'forecast', body: detailBody(state, settings)};
  const pinned = state.pinned ? [pinnedPart(state, settings)] : [];
  const compared = state.gpus.length > 1 ? [comparisonPart(state, settings)] : [];
  switch (state.scenario) {
    case 'pass':
    case 'training':
      return [...compared, ...pinned, detail, {id: 'memory', title: 'Memory over time', question: 'memory_timeline', body: detail.body}];
    case 'generation':
      return [...compared, ...pinned, detail];
    case 'server':
      return [{id: 'load', title: 'Against load', make: (signal) => loadCurves(state, settings, signal)}, ...pinned, detail];
    case 'share':
      return [{id: 'share', title: 'Jobs on one GPU', question: 'share', body: {gpu: state.focus, job: state.jobs.filter(Boolean), ...settings}}];
    default: {
      const gpus = state.gpus.length > 1 ? {gpus: state.gpus} : {gpu: state.gpus[0]};
      return [{id: 'plan', title: 'The plan', question: 'plan', body: {model: modelOf(state), ...gpus, ...settings}}];
    }
  }
}

// ---- A server under several loads ---------------------------------------------------------------

/** What is shown against the load: fields of `serving.steady`, or of `serving` where nothing is steady. */
const CURVES = [
  {title: 'Time to first token, 99th percentile', head: 'TTFT, p99', unit: 's', get: (s) => s.time_to_first_token.p99},
  {title: 'Time per output token, median', head: 'TPOT, median', unit: 's', get: (s) => s.time_per_output_token.median},
  {title: 'Output tokens per second, all requests', head: 'tokens/s', unit: 'count', get: (s) => ({seconds: s.output_tokens_per_s})},
];

/** The answers for each GPU and rate, each with its GPU and rate. */
function askLoads(state, settings, signal) {
  const asked = state.gpus.flatMap((gpu) => ratesOf(state).map((rate) => ({gpu, rate})));
  return Promise.all(asked.map(async ({gpu, rate}) => {
    const body = {model: modelOf(state), gpu, ...settings, rate: Number(rate) || rate};
    const answer = await askJson('forecast', body, {fields: 'serving,gpu_name'}, signal);
    return {gpu, rate: Number(rate), name: answer.gpu_name, serving: answer.serving};
  }));
}

/** What a curve shows of an answer. */
const valueOf = (answer, curve) => curve.get(answer.serving.steady ?? answer.serving.all);

function pointOf(answer, curve) {
  const {seconds, low_s: low, high_s: high} = valueOf(answer, curve);
  const note = answer.serving.keeps_up ? [] : ['does not keep up: the queue grows'];
  return {x: answer.rate, y: seconds, low, high, note};
}

async function loadCurves(state, settings, signal) {
  const answers = await askLoads(state, settings, signal);
  const charts = CURVES.map((curve) => lines(
      state.gpus.map((gpu) => ({
        name: answers.find((answer) => answer.gpu === gpu).name,
        points: answers.filter((answer) => answer.gpu === gpu).map((answer) => pointOf(answer, curve)),
      })),
      {title: curve.title, x: {label: 'requests per second', unit: 'count'}, y: {label: '', unit: curve.unit}}));
  const columns = [
    words('GPU', (row) => row.name), numbers('requests/s', 'count', (row) => row.rate),
    words('keeps up', (row) => (row.serving.keeps_up ? 'yes' : 'no')),
    ...CURVES.map((curve) => numbers(curve.head, curve.unit, (row) => valueOf(row, curve).seconds)),
  ];
  return el('div', {class: 'loads'}, el('div', {class: 'curves'}, charts), table(columns, answers));
}
