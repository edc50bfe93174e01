// Plans: parallel configurations of a training step, on one kind of GPU or several, and servers.

import {bars, lines, partBars, scatter} from './charts.js';
import {el} from './dom.js';
import {format, labelOf} from './format.js';
import {figure, headline, memoryFigure, optionsSection, section, valueText} from './parts.js';
import {table} from './table.js';

/** "dp 4, tp 2, micro-batch 8, ZeRO 3" */
function layoutOf(c) {
  const degrees = ['dp', 'tp', 'pp', 'cp', 'ep'].filter((name) => c[name] > 1).map((name) => `${name} ${c[name]}`);
  return [
    degrees.join(', ') || 'one GPU', `micro-batch ${c.micro_batch_size}`, c.zero && c.zero !== '0' ? `ZeRO ${c.zero}` : null,
    c.checkpointing !== 'none' ? `checkpointing ${c.checkpointing}` : null, c.sequence_parallel === true ? 'sequence parallel' : null,
    c.virtual_stages > 1 ? `${c.virtual_stages} virtual stages` : null, c.dtype,
  ].filter(Boolean).join(', ');
}

const STEP_PARTS = ['compute_s', 'exposed_communication_s', 'bubble_s'];

/** A plan of training. */
export function viewTrainingPlan(p, {command}) {
  const ranked = p.candidates.filter((c) => c.rank);
  const first = ranked[0];
  return [
    headline({
      title: `Train ${p.model} on ${p.ranks} × ${p.gpu}`, answer: p,
      subtitle: `batch ${format(p.batch)}, ${format(p.seq)} tokens a sequence, cluster ${p.cluster}, ${format(p.nodes)} nodes`,
      figures: first ? [
        figure('time of a step', first.latency_s, 's', {low: first.latency_low_s, high: first.latency_high_s, note: layoutOf(first)}),
        figure('throughput', first.tokens_per_s, 'tokens/s'), figure('throughput', first.images_per_s, 'images/s'),
        figure('MFU', p.winner?.mfu_ratio, 'share'), figure('cost of a step', first.cost_of_step, ''),
        memoryFigure({...first, device_bytes: p.device_bytes}),
      ] : [figure('configurations that fit', p.fitting, 'count', {good: false, note: p.nodes_that_fit ? `${p.nodes_that_fit} nodes would do` : undefined})],
    }),
    ranked.length > 0 ? section('The best layouts', rankedBars(ranked), partBars(ranked.map((c) => ({
      label: `${c.rank}`, parts: STEP_PARTS.filter((n) => c[n] > 0).map((n) => ({name: labelOf(n), value: c[n]})), note: layoutOf(c)})),
      {title: 'What a step is made of, by rank: mean of the stages', unit: 's'})) : null,
    section('All configurations', trainingScatter(p), trainingTable(p.candidates)),
    launches(p.launch),
    alternatives(p, (c) => [format(c.latency_s, 's'), layoutOf(c)]),
    impossible(p),
    optionsSection(p, command),
  ];
}

const rankedBars = (ranked) => bars(ranked.map((c) => ({
  label: `${c.rank}: ${layoutOf(c)}`, value: c.latency_s, low: c.latency_low_s, high: c.latency_high_s,
  note: [`peak ${format(c.peak_bytes, 'bytes')}, ${format(c.margin_bytes, 'bytes')} free`, c.alike ? `${c.alike} others with these degrees may be as fast` : null,
         c.extrapolated ? 'partly extrapolated' : null].filter(Boolean)})), {title: 'Time of a step, with its 80 % interval', unit: 's'});

function trainingScatter(p) {
  const timed = p.candidates.filter((c) => c.latency_s);
  if (timed.length < 2) return null;
  const points = timed.map((c) => ({
    x: c.peak_bytes, y: c.latency_s, label: layoutOf(c), is_front: Boolean(c.rank), muted: !c.fits, color: c.rank ? 1 : 0,
    low: c.latency_low_s, high: c.latency_high_s, note: c.rank ? [`rank ${c.rank}`] : []}));
  return scatter(points.map((point) => ({...point, radius: point.is_front ? 6 : 3.5, is_front: false})), {
    title: `Time against memory of the ${timed.length} configurations that were simulated`,
    legend: [{name: 'ranked', color: 1}, {name: 'others', color: 0}],
    x: {label: 'memory of a GPU', unit: 'bytes'}, y: {label: 'time of a step', unit: 's', log: true},
    lines: [{x: p.device_bytes, label: 'GPU'}]});
}

function trainingTable(candidates) {
  const whole = (name, label) => ({label, hint: labelOf(name), get: (c) => c[name], unit: 'count'});
  return table([
    whole('rank', 'rank'), {label: 'fits', get: (c) => valueText(c.fits)}, whole('dp', 'dp'), whole('tp', 'tp'), whole('pp', 'pp'), whole('cp', 'cp'), whole('ep', 'ep'),
    whole('micro_batch_size', 'micro-batch'), {label: 'ZeRO', get: (c) => c.zero}, {label: 'checkpointing', get: (c) => c.checkpointing},
    {label: 'schedule', get: (c) => c.pipeline_schedule}, {label: 'dtype', get: (c) => c.dtype},
    {label: 'time', get: (c) => c.latency_s, unit: 's'}, {label: 'at least', hint: 'a step takes at least so long', get: (c) => c.bound_s, unit: 's'},
    {label: 'tokens/s', get: (c) => c.tokens_per_s, unit: 'count'}, {label: 'cost', get: (c) => c.cost_of_step, unit: 'count'},
    {label: 'peak', get: (c) => c.peak_bytes, unit: 'bytes'}, {label: 'free', get: (c) => c.margin_bytes, unit: 'bytes'},
  ], candidates, {first: 15, caption: 'Configurations'});
}

function launches(launch) {
  if (!launch || launch.length === 0) return null;
  return section('Start it', launch.map((line) => [el('h3', null, line.software), el('pre', null, line.command),
    line.without ? el('p', {class: 'note'}, `Without: ${line.without}`) : null]).flat());
}

/** The best with another value of an option; candidates that the report leaves out are not shown. */
function alternatives(p, describe) {
  const known = (p.alternatives ?? []).filter((a) => p.candidates[a.candidate]);
  if (known.length === 0) return null;
  return section('With another value', table([
    {label: 'option', get: (a) => a.option}, {label: 'value', get: (a) => a.value},
    {label: 'best', get: (a) => describe(p.candidates[a.candidate])[0]}, {label: 'configuration', get: (a) => describe(p.candidates[a.candidate])[1]}],
  known, {first: 30}));
}

function impossible(p) {
  const list = [...(p.impossible ?? []), ...(p.failures ?? [])];
  return list.length === 0 ? null : section('Not possible', table([
    {label: 'reason', get: (i) => i.reason}, {label: 'configurations', get: (i) => i.count, unit: 'count'}], list, {first: 10}));
}

/** Plans of the same training on several kinds of GPU. */
export function viewTrainingPlans(c, {command}) {
  const firsts = c.plans.map((p) => ({plan: p, first: p.candidates.find((x) => x.rank)}));
  const timed = firsts.filter((f) => f.first);
  return [
    headline({title: `Train ${c.plans[0]?.model ?? ''} on ${c.plans.length} kinds of GPU`, answer: {assumptions: c.plans[0]?.assumptions, warnings: []},
              figures: timed.slice(0, 3).map((f) => figure(f.plan.gpu, f.first.latency_s, 's', {low: f.first.latency_low_s, high: f.first.latency_high_s, note: layoutOf(f.first)}))}),
    section('The best of each', bars(timed.map(({plan, first}) => ({label: `${plan.ranks} × ${plan.gpu}`, value: first.latency_s, low: first.latency_low_s, high: first.latency_high_s, note: layoutOf(first)})),
                                     {title: 'Time of a step, with its 80 % interval', unit: 's'}),
            timed.some((f) => f.first.cost_of_step) ? bars(timed.map(({plan, first}) => ({label: `${plan.ranks} × ${plan.gpu}`, value: first.cost_of_step, color: 2})), {title: 'Cost of a step, in the unit of the prices', unit: ''}) : null,
            table([{label: 'GPU', get: (f) => f.plan.gpu}, {label: 'GPUs', get: (f) => f.plan.ranks, unit: 'count'}, {label: 'fitting', get: (f) => f.plan.fitting, unit: 'count'},
                   {label: 'time', get: (f) => f.first?.latency_s, unit: 's'}, {label: 'tokens/s', get: (f) => f.first?.tokens_per_s, unit: 'count'},
                   {label: 'MFU', get: (f) => f.plan.winner?.mfu_ratio, unit: 'share'}, {label: 'cost of a step', get: (f) => f.first?.cost_of_step, unit: 'count'},
                   {label: 'configuration', get: (f) => (f.first ? layoutOf(f.first) : 'none fits')}], firsts, {})),
    ...c.plans.map((p) => el('details', {class: 'section'}, el('summary', null, `The plan for ${p.gpu}`), viewTrainingPlan(p, {}).filter(Boolean))),
    optionsSection({}, command),
  ];
}

/** "tp 2, 4 replicas, 60 clients each, bf16" */
function serverOf(c) {
  return [
    ['tp', 'pp', 'dp', 'ep'].filter((n) => c[n] > 1).map((n) => `${n} ${c[n]}`).join(', ') || 'one GPU each',
    `${c.replicas} replica${c.replicas === 1 ? '' : 's'}`, c.prefill_workers ? `${c.prefill_workers} prefill workers` : null,
    `${c.concurrency} clients each`, c.dtype || null, c.kv_dtype ? `cache ${c.kv_dtype}` : null,
  ].filter(Boolean).join(', ');
}

/** A plan of servers. */
export function viewServingPlan(p, {command}) {
  const first = p.candidates[0];
  const found = first?.simulated;
  const kinds = p.hardware.map((h) => h.gpu);
  return [
    headline({
      title: `Serve ${p.model} on ${p.gpus} × ${kinds.join(' or ')}`, answer: p,
      subtitle: `${p.software}, prompt ${format(p.prompt)}, output ${format(p.output)} tokens` + limitText(p),
      figures: found ? [
        figure('tokens/s of a GPU', first.gpu_tokens_per_s, 'tokens/s', {low: first.gpu_tokens_low_per_s, high: first.gpu_tokens_high_per_s, note: `${first.gpu}: ${serverOf(first)}`}),
        figure('tokens/s of a user', first.user_tokens_per_s, 'tokens/s'),
        figure(`time to first token, ${p.percentile}`, first.ttft_s, 's', {low: first.ttft_low_s, high: first.ttft_high_s}),
        figure(`time per output token, ${p.percentile}`, first.tpot_s, 's', {low: first.tpot_low_s, high: first.tpot_high_s}),
        figure('a million tokens', first.cost_of_million_tokens, 'count', {note: 'in the unit of the price'}),
        p.ttft_s || p.tpot_s ? figure('limits', first.meets_limits ? 'kept' : 'missed', '', {good: first.meets_limits, note: first.limits_certain === false ? 'not certain: an interval crosses one' : undefined}) : null,
      ] : [figure('layouts that fit', p.fitting, 'count', {good: false})],
    }),
    section('Speed of a user against throughput of a GPU', frontChart(p, kinds)),
    section('Against load', loadCharts(p, kinds)),
    section('All configurations', servingTable(p.candidates)),
    launches(p.launch),
    alternatives(p, (c) => [c.simulated ? `${format(c.gpu_tokens_per_s, 'tokens/s')} a GPU` : 'not simulated', `${c.gpu}: ${serverOf(c)}`]),
    impossible(p),
    optionsSection(p, command),
  ];
}

function limitText(p) {
  const limits = [p.ttft_s ? `TTFT ≤ ${format(p.ttft_s, 's')}` : null, p.tpot_s ? `TPOT ≤ ${format(p.tpot_s, 's')}` : null].filter(Boolean);
  return limits.length > 0 ? `, ${limits.join(' and ')} at the ${p.percentile}` : '';
}

/** Throughput of a GPU against speed of a user, with the front of each kind of GPU. */
function frontChart(p, kinds) {
  const points = p.candidates.filter((c) => c.simulated).map((c) => ({
    x: c.user_tokens_per_s, y: c.gpu_tokens_per_s, low: c.gpu_tokens_low_per_s, high: c.gpu_tokens_high_per_s,
    label: `${c.gpu}: ${serverOf(c)}`, is_front: c.pareto, muted: !c.meets_limits, color: kinds.indexOf(c.gpu),
    note: [`TTFT ${format(c.ttft_s, 's')}, TPOT ${format(c.tpot_s, 's')}`,
           c.cost_of_million_tokens ? `${format(c.cost_of_million_tokens)} for a million tokens` : null,
           c.meets_limits ? null : 'misses a limit'].filter(Boolean)}));
  if (points.length === 0) return null;
  return scatter(points, {
    title: 'The line joins what no other configuration beats in both', legend: kinds.map((name, color) => ({name, color})), height: 380,
    x: {label: 'tokens/s of a user (1 / mean time per output token)', unit: 'count'}, y: {label: 'tokens/s of a GPU', unit: 'count'}});
}

/** Times and throughput of the layouts with most loads, by clients. */
function loadCharts(p, kinds) {
  const most = 4;
  const layouts = new Map();
  for (const c of p.candidates.filter((x) => x.simulated)) {
    const key = JSON.stringify([c.gpu, c.tp, c.pp, c.dp, c.ep, c.replicas, c.prefill_workers, c.dtype, c.kv_dtype]);
    layouts.set(key, [...(layouts.get(key) ?? []), c]);
  }
  const shown = [...layouts.values()].filter((list) => list.length > 2).slice(0, most);
  if (shown.length === 0) return null;
  const name = (c) => (kinds.length > 1 ? `${c.gpu}, ` : '') + serverOf(c).replace(/, \d+ clients each/, '');
  const series = (field, low, high) => shown.map((list) => ({
    name: name(list[0]), points: [...list].sort((a, b) => a.concurrency - b.concurrency)
        .map((c) => ({x: c.concurrency, y: c[field], low: c[low], high: c[high], note: serverOf(c)}))}));
  const x = {label: 'clients of each replica', unit: 'count', log: true};
  return [
    lines(series('ttft_s', 'ttft_low_s', 'ttft_high_s'), {title: `Time to first token, ${p.percentile}`, x, y: {label: 'time', unit: 's'}, limit: p.ttft_s ? {value: p.ttft_s, label: 'limit'} : undefined}),
    lines(series('tpot_s', 'tpot_low_s', 'tpot_high_s'), {title: `Time per output token, ${p.percentile}`, x, y: {label: 'time', unit: 's'}, limit: p.tpot_s ? {value: p.tpot_s, label: 'limit'} : undefined}),
    lines(series('gpu_tokens_per_s', 'gpu_tokens_low_per_s', 'gpu_tokens_high_per_s'), {title: 'Throughput of a GPU', x, y: {label: 'tokens/s', unit: 'count'}}),
  ];
}

function servingTable(candidates) {
  return table([
    {label: 'GPU', get: (c) => c.gpu}, {label: 'layout', get: serverOf}, {label: 'fits', get: (c) => valueText(c.fits)},
    {label: 'limits', get: (c) => (c.simulated ? (c.meets_limits ? 'kept' : 'missed') : c.pruned ? 'missed' : '–')},
    {label: 'front', get: (c) => (c.pareto ? 'yes' : '')},
    {label: 'tokens/s GPU', get: (c) => c.gpu_tokens_per_s, unit: 'count'}, {label: 'tokens/s user', get: (c) => c.user_tokens_per_s, unit: 'count'},
    {label: 'TTFT', get: (c) => c.ttft_s, unit: 's'}, {label: 'TPOT', get: (c) => c.tpot_s, unit: 's'},
    {label: 'requests/s', get: (c) => c.requests_per_s, unit: 'count'}, {label: 'cost of 1 M tokens', get: (c) => c.cost_of_million_tokens, unit: 'count'},
    {label: 'peak', get: (c) => c.peak_bytes, unit: 'bytes'}, {label: 'free', get: (c) => c.margin_bytes, unit: 'bytes'},
  ], candidates, {first: 15, caption: 'Configurations, the best first'});
}
