// Plans of servers: the Pareto front, and the layouts against load.

import {lines, scatter} from './charts.js';
import {format} from './format.js';
import {
  figure, headline, launches, limitAt, optionsSection, priceNote, section, valueText,
} from './parts.js';
import {numbers, table, words} from './table.js';
import {alternatives, impossible} from './view_plans.js';

/** "tp 2, 4 replicas, bf16" */
function layoutOfServer(c) {
  const degrees = ['tp', 'pp', 'dp', 'ep'].filter((name) => c[name] > 1);
  return [
    degrees.map((name) => `${name} ${c[name]}`).join(', ') || 'one GPU each',
    `${c.replicas} replica${c.replicas === 1 ? '' : 's'}`,
    c.prefill_workers ? `${c.prefill_workers} prefill workers` : null,
    c.dtype || null,
    c.kv_dtype ? `cache ${c.kv_dtype}` : null,
  ].filter(Boolean).join(', ');
}

const serverOf = (c) => `${layoutOfServer(c)}, ${c.concurrency} clients each`;

/** A plan of servers. */
export function viewServingPlan(p, {command}) {
  const kinds = p.hardware.map((hardware) => hardware.gpu);
  const first = p.candidates[0];
  return [
    headline({
      title: `Serve ${p.model} on ${p.gpus} × ${kinds.join(' or ')}`,
      subtitle: `${p.software}, prompt ${format(p.prompt)}, output ${format(p.output)} tokens` +
          limitText(p),
      answer: p,
      figures: first?.simulated ? firstServer(p, first) :
                                  [figure('layouts that fit', p.fitting, 'count', {good: false})],
    }),
    section('Speed of a user against throughput of a GPU', frontChart(p, kinds)),
    section('Against load', loadCharts(p, kinds)),
    section('All configurations', serverTable(p.candidates)),
    launches(p.launch),
    alternatives(p, describe),
    impossible(p),
    optionsSection(p, command),
  ];
}

function describe(c) {
  const rate = c.simulated ? `${format(c.gpu_tokens_per_s, 'tokens/s')} a GPU` : 'not simulated';
  return [rate, `${c.gpu}: ${serverOf(c)}`];
}

function limitText(p) {
  const limits = [
    p.ttft_s ? `TTFT ≤ ${format(p.ttft_s, 's')}` : null,
    p.tpot_s ? `TPOT ≤ ${format(p.tpot_s, 's')}` : null,
  ].filter(Boolean);
  return limits.length > 0 ? `, ${limits.join(' and ')} at the ${p.percentile}` : '';
}

function firstServer(p, first) {
  const crosses = 'not certain: an interval crosses one';
  const uncertain = first.limits_certain === false ? crosses : undefined;
  const price = p.hardware.find(({gpu}) => gpu === first.gpu)?.gpu_price;
  return [
    figure('tokens/s of a GPU', first.gpu_tokens_per_s, 'tokens/s', {
      low: first.gpu_tokens_low_per_s,
      high: first.gpu_tokens_high_per_s,
      note: `${first.gpu}: ${serverOf(first)}`,
    }),
    figure('tokens/s of a user', first.user_tokens_per_s, 'tokens/s'),
    figure(`time to first token, ${p.percentile}`, first.ttft_s, 's',
           {low: first.ttft_low_s, high: first.ttft_high_s}),
    figure(`time per output token, ${p.percentile}`, first.tpot_s, 's',
           {low: first.tpot_low_s, high: first.tpot_high_s}),
    figure('energy of a token', first.energy_per_token_j, 'J'),
    figure('a million tokens', first.cost_of_million_tokens, 'count',
           {note: priceNote(price) ?? 'in the unit of the price'}),
    p.ttft_s || p.tpot_s ?
        figure('limits', first.meets_limits ? 'kept' : 'missed', '',
               {good: first.meets_limits, note: uncertain}) : null,
  ];
}

/** Throughput of a GPU against speed of a user, with the front of each kind of GPU. */
function frontChart(p, kinds) {
  const cost = (c) => `${format(c.cost_of_million_tokens)} for a million tokens`;
  const point = (c) => ({
    x: c.user_tokens_per_s,
    y: c.gpu_tokens_per_s,
    low: c.gpu_tokens_low_per_s,
    high: c.gpu_tokens_high_per_s,
    label: `${c.gpu}: ${serverOf(c)}`,
    is_front: c.pareto,
    muted: !c.meets_limits,
    color: kinds.indexOf(c.gpu),
    note: [
      `TTFT ${format(c.ttft_s, 's')}, TPOT ${format(c.tpot_s, 's')}`,
      c.cost_of_million_tokens ? cost(c) : null,
      c.meets_limits ? null : 'misses a limit',
    ].filter(Boolean),
  });
  const points = p.candidates.filter((c) => c.simulated).map(point);
  if (points.length === 0) return null;
  return scatter(points, {
    title: 'The line joins what no other configuration beats in both',
    legend: kinds.map((name, color) => ({name, color})),
    height: 380,
    x: {label: 'tokens/s of a user (1 / mean time per output token)', unit: 'count'},
    y: {label: 'tokens/s of a GPU', unit: 'count'},
  });
}

/** The simulated candidates of each layout, by clients; the best layouts first. */
function layoutsOf(candidates) {
  const layouts = new Map();
  for (const c of candidates.filter((x) => x.simulated)) {
    const key = `${c.gpu}, ${layoutOfServer(c)}`;
    layouts.set(key, [...(layouts.get(key) ?? []), c]);
  }
  return [...layouts.values()].map((list) => list.sort((a, b) => a.concurrency - b.concurrency));
}

/** Times and throughput of the best layouts with several loads. */
function loadCharts(p, kinds) {
  const most = 4;
  const shown = layoutsOf(p.candidates).filter((list) => list.length > 2).slice(0, most);
  if (shown.length === 0) return null;
  const name = (c) => (kinds.length > 1 ? `${c.gpu}, ` : '') + layoutOfServer(c);
  const series = (field, low, high) => shown.map((list) => ({
    name: name(list[0]),
    points: list.map((c) => ({
      x: c.concurrency, y: c[field], low: c[low], high: c[high], note: serverOf(c),
    })),
  }));
  const x = {label: 'clients of each replica', unit: 'count', log: true};
  const time = {label: 'time', unit: 's'};
  return [
    lines(series('ttft_s', 'ttft_low_s', 'ttft_high_s'), {
      title: `Time to first token, ${p.percentile}`, x, y: time, limit: limitAt(p.ttft_s, 'limit'),
    }),
    lines(series('tpot_s', 'tpot_low_s', 'tpot_high_s'), {
      title: `Time per output token, ${p.percentile}`, x, y: time,
      limit: limitAt(p.tpot_s, 'limit'),
    }),
    lines(series('gpu_tokens_per_s', 'gpu_tokens_low_per_s', 'gpu_tokens_high_per_s'), {
      title: 'Throughput of a GPU', x, y: {label: 'tokens/s', unit: 'count'},
    }),
  ];
}

function limitWord(c) {
  if (c.simulated) return c.meets_limits ? 'kept' : 'missed';
  return c.pruned ? 'missed' : '–';
}

function serverTable(candidates) {
  return table([
    words('GPU', (c) => c.gpu),
    words('layout', serverOf),
    words('fits', (c) => valueText(c.fits)),
    words('limits', limitWord),
    words('front', (c) => (c.pareto ? 'yes' : '')),
    numbers('tokens/s GPU', 'count', (c) => c.gpu_tokens_per_s),
    numbers('tokens/s user', 'count', (c) => c.user_tokens_per_s),
    numbers('TTFT', 's', (c) => c.ttft_s),
    numbers('TPOT', 's', (c) => c.tpot_s),
    numbers('requests/s', 'count', (c) => c.requests_per_s),
    numbers('cost of 1 M tokens', 'count', (c) => c.cost_of_million_tokens),
    numbers('peak', 'bytes', (c) => c.peak_bytes),
    numbers('free', 'bytes', (c) => c.margin_bytes),
  ], candidates, {first: 15, caption: 'Configurations, the best first'});
}
