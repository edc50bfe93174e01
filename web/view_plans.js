// Plans of training: on one kind of GPU or several. Parts that plans of servers share.

import {bars, partBars, scatter} from './charts.js';
import {el} from './dom.js';
import {format, labelOf} from './format.js';
import {
  figure, headline, launches, memoryFigure, optionsSection, priceNote, section, valueText,
} from './parts.js';
import {numbers, table, words} from './table.js';

// ---- What all plans have ----------------------------------------------------------------------

/**
 * The best with another value of an option. Candidates that a report left out are not shown.
 * @param {(candidate: object) => [string, string]} describe  its number, and its configuration
 */
export function alternatives(plan, describe) {
  const known = (plan.alternatives ?? []).filter((a) => plan.candidates[a.candidate]);
  if (known.length === 0) return null;
  const best = (a) => describe(plan.candidates[a.candidate]);
  return section('With another value', table([
    words('option', (a) => a.option),
    words('value', (a) => a.value),
    words('best', (a) => best(a)[0]),
    words('configuration', (a) => best(a)[1]),
  ], known, {first: 30}));
}

/** Why configurations are not possible. */
export function impossible(plan) {
  const list = [...(plan.impossible ?? []), ...(plan.failures ?? [])];
  if (list.length === 0) return null;
  return section('Not possible', table([
    words('reason', (i) => i.reason),
    numbers('configurations', 'count', (i) => i.count),
  ], list, {first: 10}));
}

// ---- Training ---------------------------------------------------------------------------------

const stepEnds = (c) => ({low: c.latency_low_s, high: c.latency_high_s});

/** "dp 4, tp 2, micro-batch 8, ZeRO 3" */
function layoutOf(c) {
  const degrees = ['dp', 'tp', 'pp', 'cp', 'ep'].filter((name) => c[name] > 1);
  return [
    degrees.map((name) => `${name} ${c[name]}`).join(', ') || 'one GPU',
    `micro-batch ${c.micro_batch_size}`,
    c.zero && c.zero !== '0' ? `ZeRO ${c.zero}` : null,
    c.checkpointing !== 'none' ? `checkpointing ${c.checkpointing}` : null,
    c.sequence_parallel === true ? 'sequence parallel' : null,
    c.virtual_stages > 1 ? `${c.virtual_stages} virtual stages` : null,
    c.dtype,
  ].filter(Boolean).join(', ');
}

/** A plan of training. */
export function viewTrainingPlan(p, {command}) {
  const ranked = p.candidates.filter((c) => c.rank);
  return [
    headline({
      title: `Train ${p.model} on ${p.ranks} × ${p.gpu}`,
      subtitle: `batch ${format(p.batch)}, ${format(p.seq)} tokens a sequence, ` +
          `cluster ${p.cluster || 'of the GPU'}`,
      answer: p,
      figures: ranked.length > 0 ? planFigures(p, ranked[0]) : [nothingFits(p)],
    }),
    ranked.length > 0 ? section('The best layouts', rankedBars(ranked), stepParts(ranked)) : null,
    section('All configurations', trainingScatter(p), trainingTable(p.candidates)),
    launches(p.launch),
    alternatives(p, (c) => [format(c.latency_s, 's'), layoutOf(c)]),
    impossible(p),
    optionsSection(p, command),
  ];
}

function planFigures(p, first) {
  return [
    figure('time of a step', first.latency_s, 's', {...stepEnds(first), note: layoutOf(first)}),
    figure('throughput', first.tokens_per_s, 'tokens/s'),
    figure('images', first.images_per_s, 'images/s'),
    figure('MFU', p.winner?.mfu_ratio, 'share'),
    figure('cost of a step', first.cost_of_step, '', {note: priceNote(p.gpu_price)}),
    memoryFigure({...first, device_bytes: p.device_bytes}),
  ];
}

function nothingFits(p) {
  const note = p.nodes_that_fit ? `${p.nodes_that_fit} nodes would do` : undefined;
  return figure('configurations that fit', p.fitting, 'count', {good: p.fitting > 0, note});
}

function rankedBars(ranked) {
  const row = (c) => ({
    label: `${c.rank}: ${layoutOf(c)}`,
    value: c.latency_s,
    ...stepEnds(c),
    note: [
      `peak ${format(c.peak_bytes, 'bytes')}, ${format(c.margin_bytes, 'bytes')} free`,
      c.alike ? `${c.alike} others with these degrees may be as fast` : null,
      c.extrapolated ? 'partly extrapolated' : null,
    ].filter(Boolean),
  });
  return bars(ranked.map(row), {title: 'Time of a step, with its 80 % interval', unit: 's'});
}

function stepParts(ranked) {
  const names = ['compute_s', 'exposed_communication_s', 'bubble_s'];
  const row = (c) => ({
    label: `${c.rank}`,
    parts: names.filter((n) => c[n] > 0).map((n) => ({name: labelOf(n), value: c[n]})),
    note: layoutOf(c),
  });
  return partBars(ranked.map(row), {
    title: 'What a step is made of, by rank: mean of the stages', unit: 's',
  });
}

function trainingScatter(p) {
  const timed = p.candidates.filter((c) => c.latency_s);
  if (timed.length < 2) return null;
  const point = (c) => ({
    x: c.peak_bytes,
    y: c.latency_s,
    ...stepEnds(c),
    label: layoutOf(c),
    muted: !c.fits,
    color: c.rank ? 1 : 0,
    radius: c.rank ? 6 : 3.5,
    note: c.rank ? [`rank ${c.rank}`] : [],
  });
  return scatter(timed.map(point), {
    title: `Time against memory of the ${timed.length} configurations that were simulated`,
    legend: [{name: 'ranked', color: 1}, {name: 'others', color: 0}],
    x: {label: 'memory of a GPU', unit: 'bytes'},
    y: {label: 'time of a step', unit: 's', log: true},
    lines: [{x: p.device_bytes, label: 'GPU'}],
  });
}

function trainingTable(candidates) {
  const degree = (name) => numbers(name, 'count', (c) => c[name], labelOf(name));
  return table([
    degree('rank'),
    words('fits', (c) => valueText(c.fits)),
    ...['dp', 'tp', 'pp', 'cp', 'ep'].map(degree),
    numbers('micro-batch', 'count', (c) => c.micro_batch_size),
    words('ZeRO', (c) => c.zero),
    words('checkpointing', (c) => c.checkpointing),
    words('schedule', (c) => c.pipeline_schedule),
    words('dtype', (c) => c.dtype),
    numbers('time', 's', (c) => c.latency_s),
    numbers('at least', 's', (c) => c.bound_s, 'a step takes at least so long'),
    numbers('tokens/s', 'count', (c) => c.tokens_per_s),
    numbers('cost', 'count', (c) => c.cost_of_step),
    numbers('peak', 'bytes', (c) => c.peak_bytes),
    numbers('free', 'bytes', (c) => c.margin_bytes),
  ], candidates, {first: 15, caption: 'Configurations'});
}

/** Plans of the same training on several kinds of GPU. */
export function viewTrainingPlans(c, {command}) {
  const pairs = c.plans.map((plan) => ({plan, first: plan.candidates.find((x) => x.rank)}));
  const timed = pairs.filter((pair) => pair.first);
  return [
    headline({
      title: `Train ${c.plans[0]?.model ?? ''} on ${c.plans.length} kinds of GPU`,
      answer: {},
      figures: timed.slice(0, 3).map(({plan, first}) => figure(
          plan.gpu, first.latency_s, 's', {...stepEnds(first), note: layoutOf(first)})),
    }),
    section('The best of each', bestBars(timed), bestTable(pairs)),
    ...c.plans.map((plan) => el(
        'details', {class: 'section'}, el('summary', null, `The plan for ${plan.gpu}`),
        viewTrainingPlan(plan, {}).filter(Boolean))),
    optionsSection({}, command),
  ];
}

const gpusOf = (plan) => `${plan.ranks} × ${plan.gpu}`;

function bestBars(timed) {
  if (timed.length === 0) return null;
  const time = ({plan, first}) =>
      ({label: gpusOf(plan), value: first.latency_s, ...stepEnds(first), note: layoutOf(first)});
  const cost = ({plan, first}) => ({label: gpusOf(plan), value: first.cost_of_step, color: 2});
  return [
    bars(timed.map(time), {title: 'Time of a step, with its 80 % interval', unit: 's'}),
    timed.some(({first}) => first.cost_of_step) ?
        bars(timed.map(cost), {title: 'Cost of a step, in the unit of the prices', unit: ''}) :
        null,
  ];
}

function bestTable(pairs) {
  return table([
    words('GPU', ({plan}) => plan.gpu),
    numbers('GPUs', 'count', ({plan}) => plan.ranks),
    numbers('fitting', 'count', ({plan}) => plan.fitting, 'configurations that fit'),
    numbers('time', 's', ({first}) => first?.latency_s),
    numbers('tokens/s', 'count', ({first}) => first?.tokens_per_s),
    numbers('MFU', 'share', ({plan}) => plan.winner?.mfu_ratio),
    numbers('cost of a step', 'count', ({first}) => first?.cost_of_step),
    words('configuration', ({first}) => (first ? layoutOf(first) : 'none fits')),
  ], pairs);
}
