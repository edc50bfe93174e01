// Jobs on one GPU, jobs on a pool, a pool over time, embedding tables on ranks.

import {bars, partBars, timeline} from './charts.js';
import {el} from './dom.js';
import {format} from './format.js';
import {
  anyRecord, columnsOf, figure, headline, optionsSection, partsBar, section, valueText,
} from './parts.js';
import {numbers, table, words} from './table.js';

// ---- Jobs on one GPU --------------------------------------------------------------------------

/** Jobs that share a GPU. */
export function viewShare(s, {command}) {
  const sum = s.sum_of_relative_speeds;
  return [
    headline({
      title: `${s.jobs.length} jobs on ${s.gpu_name || s.gpu}`,
      subtitle: `shared by ${s.how}`,
      answer: s,
      figures: [
        figure('sum of relative speeds', sum, '', {
          low: s.sum_of_relative_speeds_low,
          high: s.sum_of_relative_speeds_high,
          note: 'above 1 it is worth it',
          good: sum > 1,
        }),
        figure('memory', s.memory_bytes, 'bytes',
               {note: `of ${format(s.usable_bytes, 'bytes')}`, good: s.fits}),
        figure('wanted of the GPU', s.gpu_demand, 'share', {note: 'sum of the shares of time'}),
      ],
    }),
    section('Speeds', speedBars(s.jobs), speedTable(s.jobs)),
    section('Memory', partsBar(s.jobs.map((j) => ({name: j.name, value: j.memory_bytes})), {
      title: 'Memory of the jobs', unit: 'bytes', limit: {value: s.usable_bytes, label: 'usable'},
    })),
    el('details', {class: 'section'}, el('summary', null, 'What each job takes alone'),
       s.jobs.map((j) => [el('h3', null, j.name), anyRecord(j.alone)])),
    optionsSection({}, command),
  ];
}

function speedBars(jobs) {
  const row = (j) => ({
    label: j.name,
    value: j.relative_speed,
    low: j.relative_speed_low,
    high: j.relative_speed_high,
    note: [format(j.steps_per_s, 'steps/s'), `alone a step takes ${format(j.alone.step_s, 's')}`],
  });
  return bars(jobs.map(row), {title: 'Speed beside the others, over that alone', unit: 'share'});
}

function speedTable(jobs) {
  return table([
    words('job', (j) => j.name),
    words('model', (j) => j.model),
    words('mode', (j) => j.mode),
    numbers('relative speed', 'share', (j) => j.relative_speed),
    numbers('steps/s', 'count', (j) => j.steps_per_s),
    numbers('step alone', 's', (j) => j.alone.step_s),
    numbers('share of GPU time alone', 'share', (j) => j.alone.gpu_share),
    numbers('memory', 'bytes', (j) => j.memory_bytes),
    words('slice', (j) => j.slice),
    words('keeps up', (j) => valueText(j.keeps_up)),
  ], jobs);
}

// ---- Jobs on a pool ---------------------------------------------------------------------------

/** Which job goes where. */
export function viewAllocation(a, {command}) {
  const kinds = a.pool.map((kind) => kind.gpu);
  return [
    headline({
      title: `${a.jobs.length} jobs on a pool of GPUs`,
      subtitle: `${a.pool.map(kindText).join(', ')}; best for ${a.objective}`,
      answer: a,
      figures: allocationFigures(a),
    }),
    section('The pool', poolBars(a.pool)),
    section('Jobs', jobBars(a.jobs), shareBars(a.jobs, kinds), whenChart(a, kinds),
            jobTable(a.jobs)),
    el('details', {class: 'section'}, el('summary', null, 'What each place would give'),
       a.jobs.map((j) => table(columnsOf(j.options), j.options, {caption: j.name}))),
    optionsSection({}, command),
  ];
}

const kindText = (kind) => `${kind.gpus} × ${kind.gpu_name || kind.gpu}`;

function allocationFigures(a) {
  const unit = a.objective === 'makespan' ? 'hours' : '';
  const blind = typeof a.blind_value === 'number' ?
      `${format(a.blind_value, unit)} without telling kinds apart` : undefined;
  return [
    figure(`value of ${a.objective}`, a.value, unit, {note: blind}),
    figure('the last job ends', a.makespan_s, 'hours'),
    figure('cost', a.cost, '', {note: 'in the unit of the prices'}),
  ];
}

function poolBars(pool) {
  const row = (kind) => ({
    label: kindText(kind),
    value: kind.utilization,
    note: `${format(kind.used_gpus)} in use on average`,
  });
  return bars(pool.map(row), {title: 'GPUs in use', unit: 'share'});
}

function placeText(place) {
  return `${format(place.share, 'share')} of the time on ${place.gpus} × ${place.gpu}` +
      (place.dtype ? ` in ${place.dtype}` : '') + (place.beside ? ` beside ${place.beside}` : '');
}

const placesText = (job) => job.places.map(placeText).join('; ') || 'nowhere';

function jobBars(jobs) {
  const row = (j) => ({
    label: j.name, value: j.relative_speed, note: [`runs ${placesText(j)}`, j.note].filter(Boolean),
  });
  return bars(jobs.map(row), {title: 'Mean speed, over that at the fastest place', unit: 'share'});
}

/** The places of each job, those of one kind of GPU in one color. */
function shareBars(jobs, kinds) {
  const parts = (j) => kinds.flatMap((gpu) => j.places.filter((place) => place.gpu === gpu))
      .map((place) => ({name: place.gpu, value: place.share, note: placeText(place)}));
  const rows = jobs.filter((j) => j.places.length > 0)
      .map((j) => ({label: j.name, parts: parts(j)}));
  // Shares of different times cannot lie in one bar.
  if (rows.length === 0 || jobs.some((j) => j.places.some((place) => place.end_s))) return null;
  return partBars(rows, {title: 'Share of the time on each kind of GPU', unit: 'share'});
}

/** Jobs one after the other, where places end before the job's turn does. */
function whenChart(a, kinds) {
  const jobs = a.jobs.filter((j) => j.places.length > 0);
  if (!a.whole && !jobs.some((j) => j.places.some((place) => place.end_s))) return null;
  const endOf = (j, place) => place.end_s ?? j.finish_s ?? 0;
  const last = Math.max(1, ...jobs.flatMap((j) => j.places.map((place) => endOf(j, place))));
  const item = (j, place) => ({
    start: place.begin_s,
    end: endOf(j, place) || last,
    label: `${j.name} on ${place.gpu}`,
    note: placeText(place),
    color: kinds.indexOf(place.gpu),
  });
  return timeline(
      jobs.map((j) => ({name: j.name, items: j.places.map((place) => item(j, place))})),
      {title: 'When jobs run', unit: 'hours', legend: kinds.map((name, color) => ({name, color}))});
}

function jobTable(jobs) {
  return table([
    words('job', (j) => j.name),
    words('model', (j) => j.model),
    words('places', placesText),
    numbers('steps/s', 'count', (j) => j.steps_per_s),
    numbers('relative speed', 'share', (j) => j.relative_speed),
    numbers('ends', 'hours', (j) => j.finish_s),
    numbers('deadline', 'hours', (j) => j.deadline_s),
    words('in time', (j) => valueText(j.meets_deadline)),
    numbers('cost', 'count', (j) => j.cost),
    words('note', (j) => j.note),
  ], jobs, {first: 50});
}

// ---- A pool over time -------------------------------------------------------------------------

const POLICIES = {fifo: 'first come, first served', blind: 'kinds of GPU not told apart'};
const policyOf = (p) => POLICIES[p.policy] ?? p.policy;

/** A pool over time, under several policies. */
export function viewSimulation(s, {command}) {
  const last = s.policies[s.policies.length - 1];
  const rows = (field) =>
      s.policies.map((p, color) => ({label: policyOf(p), value: p[field], color}));
  return [
    headline({
      title: `${s.arrivals} jobs arrive at a pool`,
      subtitle: `best for ${s.objective}`,
      answer: s,
      figures: [
        figure('mean time of a job', last.mean_s, 'hours', {note: policyOf(last)}),
        figure('the last job ends', last.makespan_s, 'hours'),
        figure('cost', last.cost, ''),
      ],
    }),
    section('Policies',
            bars(rows('mean_s'), {title: 'Mean time from arrival to end', unit: 'hours'}),
            bars(rows('makespan_s'), {title: 'The last job ends', unit: 'hours'}),
            bars(rows('utilization'), {title: 'GPUs in use', unit: 'share'}),
            policyTable(s.policies)),
    optionsSection({}, command),
  ];
}

function policyTable(policies) {
  return table([
    words('policy', policyOf),
    numbers('mean', 'hours', (p) => p.mean_s),
    numbers('median', 'hours', (p) => p.median_s),
    numbers('95 % are below', 'hours', (p) => p.p95_s),
    numbers('last job ends', 'hours', (p) => p.makespan_s),
    numbers('in use', 'share', (p) => p.utilization),
    numbers('deadlines met', 'count', (p) => p.met_deadlines),
    numbers('cost', 'count', (p) => p.cost),
  ], policies);
}

// ---- Embedding tables -------------------------------------------------------------------------

const COSTS = ['forward_s', 'backward_s', 'exchange_s', 'reduce_s'];

/** Embedding tables on the ranks of a cluster. */
export function viewPlacement(p, {command}) {
  return [
    headline({
      title: `${p.tables.length} embedding tables on ${p.ranks} × ${p.gpu}`,
      subtitle: `cluster ${p.cluster}, batch ${format(p.batch)}, sums in ${p.dtype}`,
      answer: p,
      figures: [
        figure('time of a step', p.cost.total_s, 's', {note: 'that tables cause'}),
        figure('no placement takes less than', p.bound_s, 's'),
        figure('tables', p.tables_bytes, 'bytes',
               {note: `${format(p.usable_bytes, 'bytes')} usable on each GPU`}),
      ],
    }),
    section('Beside simple rules', costBars(p), rulesThatDoNotFit(p.rules)),
    section('Ranks', lookupBars(p.rank_tables), rankMemoryBars(p)),
    section('Tables', table(columnsOf(p.tables), p.tables, {first: 30})),
    optionsSection({}, command),
  ];
}

function costBars(p) {
  const parts = (cost) => COSTS.map((name) => ({name: name.replace('_s', ''), value: cost[name]}));
  const rules = p.rules.filter((rule) => rule.cost);
  return partBars([
    {label: 'this placement', parts: parts(p.cost)},
    ...rules.map((rule) => ({label: `by ${rule.rule}`, parts: parts(rule.cost)})),
  ], {title: 'Time of a step that tables cause', unit: 's'});
}

function rulesThatDoNotFit(rules) {
  const names = rules.filter((rule) => !rule.cost).map((rule) => `by ${rule.rule}`);
  return names.length === 0 ? null : el('p', {class: 'note'}, `Does not fit: ${names.join(', ')}.`);
}

function lookupBars(ranks) {
  const row = (rank) => ({
    label: `rank ${rank.rank}`,
    parts: [{name: 'forward', value: rank.forward_s}, {name: 'backward', value: rank.backward_s}],
    note: `${rank.parts} parts, ${format(rank.bytes, 'bytes')}`,
  });
  return partBars(ranks.map(row), {title: 'Time of the lookups', unit: 's'});
}

function rankMemoryBars(p) {
  const row = (rank) => ({label: `rank ${rank.rank}`, value: rank.bytes, color: 2});
  return bars(p.rank_tables.map(row), {
    title: 'Memory of the tables', unit: 'bytes', limit: {value: p.usable_bytes, label: 'usable'},
  });
}
