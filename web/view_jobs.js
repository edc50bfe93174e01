// Jobs on one GPU, jobs on a pool, a pool over time, embedding tables on ranks.

import {bars, partBars, timeline} from './charts.js';
import {el} from './dom.js';
import {format} from './format.js';
import {anyRecord, columnsOf, figure, headline, optionsSection, section, valueText} from './parts.js';
import {table} from './table.js';

/** Jobs that share a GPU. */
export function viewShare(s, {command}) {
  return [
    headline({
      title: `${s.jobs.length} jobs on ${s.gpu_name || s.gpu}`, subtitle: `shared by ${s.how}`, answer: s,
      figures: [
        figure('sum of relative speeds', s.sum_of_relative_speeds, '', {low: s.sum_of_relative_speeds_low, high: s.sum_of_relative_speeds_high, note: 'above 1 it is worth it', good: s.sum_of_relative_speeds > 1}),
        figure('memory', s.memory_bytes, 'bytes', {note: `of ${format(s.usable_bytes, 'bytes')}`, good: s.fits}),
        figure('wanted of the GPU', s.gpu_demand, 'share', {note: 'sum of the shares of time'}),
      ],
    }),
    section('Speeds', bars(s.jobs.map((j) => ({label: j.name, value: j.relative_speed, low: j.relative_speed_low, high: j.relative_speed_high,
                                              note: [`${format(j.steps_per_s, 'steps/s')}`, `alone a step takes ${format(j.alone.step_s, 's')}`]})),
                           {title: 'Speed beside the others, over that alone', unit: 'share'}),
            table([
              {label: 'job', get: (j) => j.name}, {label: 'model', get: (j) => j.model}, {label: 'mode', get: (j) => j.mode},
              {label: 'relative speed', get: (j) => j.relative_speed, unit: 'share'}, {label: 'steps/s', get: (j) => j.steps_per_s, unit: 'count'},
              {label: 'step alone', get: (j) => j.alone.step_s, unit: 's'}, {label: 'share of GPU time alone', get: (j) => j.alone.gpu_share, unit: 'share'},
              {label: 'memory', get: (j) => j.memory_bytes, unit: 'bytes'}, {label: 'slice', get: (j) => j.slice}, {label: 'keeps up', get: (j) => valueText(j.keeps_up)}], s.jobs, {})),
    section('Memory', partBars([{label: '', parts: s.jobs.map((j) => ({name: j.name, value: j.memory_bytes}))}],
                               {title: 'Memory of the jobs', unit: 'bytes', limit: {value: s.usable_bytes, label: 'usable'}})),
    el('details', {class: 'section'}, el('summary', null, 'What each job takes alone'), s.jobs.map((j) => [el('h3', null, j.name), anyRecord(j.alone)])),
    optionsSection({}, command),
  ];
}

/** Which job goes where. */
export function viewAllocation(a, {command}) {
  const jobs = a.jobs.filter((j) => j.places.length > 0);
  const end = Math.max(1, ...jobs.flatMap((j) => j.places.map((p) => p.end_s ?? j.finish_s ?? 0)));  // right end of the picture
  const kinds = a.pool.map((k) => k.gpu);
  return [
    headline({
      title: `${a.jobs.length} jobs on a pool of GPUs`, answer: a,
      subtitle: `${a.pool.map((k) => `${k.gpus} × ${k.gpu_name || k.gpu}`).join(', ')}; best for ${a.objective}`,
      figures: [
        figure(`value of ${a.objective}`, a.value, a.objective === 'makespan' ? 's' : '', {note: a.blind_value !== null ? `${format(a.blind_value, a.objective === 'makespan' ? 's' : '')} without telling kinds apart` : undefined}),
        figure('the last job ends', a.makespan_s, 's'), figure('cost', a.cost, '', {note: 'in the unit of the prices'}),
      ],
    }),
    section('The pool', bars(a.pool.map((k) => ({label: `${k.gpus} × ${k.gpu_name || k.gpu}`, value: k.utilization, note: `${format(k.used_gpus)} in use on average`})), {title: 'GPUs in use', unit: 'share'})),
    section('Jobs', bars(a.jobs.map((j) => ({label: j.name, value: j.relative_speed, note: [j.places.map(placeText).join('; ') || 'runs nowhere', j.note].filter(Boolean)})),
                         {title: 'Mean speed, over that at the fastest place', unit: 'share'}),
            shares(a, kinds), a.jobs.some((j) => j.places.some((p) => p.end_s)) || a.whole ? whenChart(jobs, kinds, end) : null,
            table([
              {label: 'job', get: (j) => j.name}, {label: 'model', get: (j) => j.model}, {label: 'places', get: (j) => j.places.map(placeText).join('; ') || 'nowhere'},
              {label: 'steps/s', get: (j) => j.steps_per_s, unit: 'count'}, {label: 'relative speed', get: (j) => j.relative_speed, unit: 'share'},
              {label: 'ends', get: (j) => j.finish_s, unit: 's'}, {label: 'deadline', get: (j) => j.deadline_s, unit: 's'}, {label: 'in time', get: (j) => valueText(j.meets_deadline)},
              {label: 'cost', get: (j) => j.cost, unit: 'count'}, {label: 'note', get: (j) => j.note}], a.jobs, {first: 50})),
    el('details', {class: 'section'}, el('summary', null, 'What each place would give'),
       a.jobs.map((j) => table(columnsOf(j.options), j.options, {caption: j.name}))),
    optionsSection({}, command),
  ];
}

const placeText = (p) => `${format(p.share, 'share')} of the time on ${p.gpus} × ${p.gpu}${p.dtype ? ` in ${p.dtype}` : ''}${p.beside ? ` beside ${p.beside}` : ''}`;

function shares(a, kinds) {
  const rows = a.jobs.filter((j) => j.places.length > 0).map((j) => ({
    label: j.name, parts: kinds.map((gpu) => ({gpu, list: j.places.filter((p) => p.gpu === gpu)})).filter((k) => k.list.length > 0)
        .flatMap((k) => k.list.map((p) => ({name: k.gpu, value: p.share, note: placeText(p)})))}));
  return rows.length === 0 ? null : partBars(rows, {title: 'Share of the time on each kind of GPU', unit: 'share'});
}

function whenChart(jobs, kinds, end) {
  return timeline(jobs.map((j) => ({name: j.name, items: j.places.map((p) => ({
    start: p.begin_s, end: p.end_s ?? j.finish_s ?? end, label: `${j.name} on ${p.gpu}`, note: placeText(p), color: kinds.indexOf(p.gpu)}))})),
                  {title: 'When jobs run', unit: 's', legend: kinds.map((name, color) => ({name, color}))});
}

const POLICIES = {fifo: 'first come, first served', blind: 'kinds of GPU not told apart'};

/** A pool over time, under several policies. */
export function viewSimulation(s, {command}) {
  const name = (p) => POLICIES[p.policy] ?? p.policy;
  const best = s.policies[s.policies.length - 1];
  const rows = (field) => s.policies.map((p, i) => ({label: name(p), value: p[field], color: i}));
  return [
    headline({title: `${s.arrivals} jobs arrive at a pool`, subtitle: `best for ${s.objective}`, answer: s, figures: [
      figure('mean time of a job', best.mean_s, 's', {note: name(best)}), figure('the last job ends', best.makespan_s, 's'), figure('cost', best.cost, '')]}),
    section('Policies', bars(rows('mean_s'), {title: 'Mean time from arrival to end', unit: 's'}), bars(rows('makespan_s'), {title: 'The last job ends', unit: 's'}),
            bars(rows('utilization'), {title: 'GPUs in use', unit: 'share'}),
            table([{label: 'policy', get: name}, {label: 'mean', get: (p) => p.mean_s, unit: 's'}, {label: 'median', get: (p) => p.median_s, unit: 's'}, {label: '95 % are below', get: (p) => p.p95_s, unit: 's'},
                   {label: 'last job ends', get: (p) => p.makespan_s, unit: 's'}, {label: 'in use', get: (p) => p.utilization, unit: 'share'}, {label: 'deadlines met', get: (p) => p.met_deadlines, unit: 'count'}, {label: 'cost', get: (p) => p.cost, unit: 'count'}], s.policies, {})),
    optionsSection({}, command),
  ];
}

const COSTS = ['forward_s', 'backward_s', 'exchange_s', 'reduce_s'];

/** Embedding tables on the ranks of a cluster. */
export function viewPlacement(p, {command}) {
  const parts = (cost) => COSTS.map((n) => ({name: n.replace('_s', ''), value: cost[n]}));
  const rules = p.rules.filter((r) => r.cost);
  return [
    headline({title: `${p.tables.length} embedding tables on ${p.ranks} × ${p.gpu}`, subtitle: `cluster ${p.cluster}, batch ${format(p.batch)}, sums in ${p.dtype}`, answer: p, figures: [
      figure('time of a step', p.cost.total_s, 's', {note: 'that tables cause'}), figure('no placement takes less than', p.bound_s, 's'), figure('tables', p.tables_bytes, 'bytes', {note: `${format(p.usable_bytes, 'bytes')} usable on each GPU`})]}),
    section('Beside simple rules', partBars([{label: 'this placement', parts: parts(p.cost)}, ...rules.map((r) => ({label: `by ${r.rule}`, parts: parts(r.cost)}))], {title: 'Time of a step that tables cause', unit: 's'}),
            p.rules.some((r) => !r.cost) ? el('p', {class: 'note'}, `Does not fit: by ${p.rules.filter((r) => !r.cost).map((r) => r.rule).join(', by ')}.`) : null),
    section('Ranks', partBars(p.rank_tables.map((r) => ({label: `rank ${r.rank}`, parts: [{name: 'forward', value: r.forward_s}, {name: 'backward', value: r.backward_s}], note: `${r.parts} parts, ${format(r.bytes, 'bytes')}`})), {title: 'Time of the lookups', unit: 's'}),
            bars(p.rank_tables.map((r) => ({label: `rank ${r.rank}`, value: r.bytes, color: 2})), {title: 'Memory of the tables', unit: 'bytes', limit: {value: p.usable_bytes, label: 'usable'}})),
    section('Tables', table(columnsOf(p.tables), p.tables, {first: 30})),
    optionsSection({}, command),
  ];
}
