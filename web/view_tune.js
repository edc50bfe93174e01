// Tuning without a search: solvers of convolutions, kernels of matrix products. And answers that
// have no view of their own.

import {bars} from './charts.js';
import {el} from './dom.js';
import {format} from './format.js';
import {anyRecord, figure, headline, optionsSection, section} from './parts.js';
import {numbers, table, words} from './table.js';

/** Solvers of convolutions. */
export function viewTuning(t, {command}) {
  const best = t.problems[0]?.solvers[0];
  return [
    headline({
      title: 'Solvers of convolutions without a search',
      answer: t,
      figures: [figure(best?.name, best?.latency_s, 's', {low: best?.low_s, high: best?.high_s})],
    }),
    ...t.problems.map((p) => section(
        p.name ? `${p.name}: ${p.problem}` : p.problem,
        el('p', {class: 'note'}, `${p.gpu}, key ${p.key}`), solverBars(p), solverTable(p.solvers))),
    optionsSection({}, command),
  ];
}

function solverBars(problem) {
  const row = (solver, label) => ({
    label,
    value: solver.latency_s,
    low: solver.low_s,
    high: solver.high_s,
    note: [
      solver.algorithm,
      `a search lists it with ${format(solver.listed_probability, 'share')}`,
      ...solver.parameters.slice(0, 3).map((parameters) => parameters.text),
    ],
  });
  const rows = problem.solvers.map((solver) => row(solver, solver.name));
  if (problem.fallback)
    rows.push(row(problem.fallback, `without a database: ${problem.fallback.name}`));
  return bars(rows, {title: 'Time of the solvers, the best first', unit: 's'});
}

function solverTable(solvers) {
  return table([
    words('solver', (solver) => solver.name),
    words('algorithm', (solver) => solver.algorithm),
    numbers('time', 's', (solver) => solver.latency_s),
    numbers('listed with', 'share', (solver) => solver.listed_probability),
    words('parameters', (solver) => solver.parameters[0]?.text ?? ''),
  ], solvers);
}

/** Kernels of matrix products. */
export function viewProducts(t, {command}) {
  return [
    headline({title: 'Kernels of matrix products without a search', answer: t, figures: []}),
    ...t.products.map((p) => section(
        p.problem, el('p', {class: 'note'}, `${p.gpu}, from tuned sizes of ${p.measured_gpu}`),
        productBars(p.kernels),
        Object.entries(p.parts).map(([name, values]) => partValueBars(name, values)))),
    optionsSection({}, command),
  ];
}

function productBars(kernels) {
  const row = (k) => ({
    label: `${k.tile_m} × ${k.tile_n}, depth ${k.depth_u}, split ${k.split}, ` +
        k.matrix_instruction,
    value: k.probability,
  });
  return bars(kernels.map(row), {title: 'Probability that it is the fastest', unit: 'share'});
}

function partValueBars(name, values) {
  const row = (v) => ({label: v.value, value: v.probability, color: 2});
  return bars(values.map(row), {title: name.replace(/_/g, ' '), unit: 'share'});
}

/** Anything else: all fields and lists. */
export function viewAny(answer, {command}) {
  const shown = ['warnings', 'warning_codes', 'assumptions', 'options'];
  return [
    headline({title: answer.name ?? 'Tilecast', answer, figures: []}),
    section('Results', anyRecord(answer, shown)),
    optionsSection(answer, command),
  ];
}
