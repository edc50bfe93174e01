// Plots with two axes: points, the roofline, lines with bands, areas that lie on each other.

import {chart, colorClass, linesOf, pathOf, textWidth} from './canvas.js';
import {svg} from './dom.js';
import {format, formatInterval} from './format.js';
import {axes} from './scales.js';

const DENSE = 100;  // points that overlap have no outline

// ---- Points -----------------------------------------------------------------------------------

/**
 * Points with their intervals; those of a front are joined by a line.
 * @param {{x: number, y: number, low?: number, high?: number, xLow?: number, xHigh?: number,
 *          label: string, note?: string|string[], is_front?: boolean, muted?: boolean,
 *          color?: number}[]} points
 *   `low`, `high`: interval along y; `is_front`: it belongs to the line of its color
 * @param {{title: string, x: Axis, y: Axis, description?: string, diagonal?: boolean,
 *          lines?: {x: number, label: string}[], legend?: {name: string, color: number}[],
 *          height?: number}} options  `diagonal`: the line x = y
 */
export function scatter(points, options) {
  const description = `${points.length} points: ${options.y.label} against ${options.x.label}. ` +
      points.filter((p) => p.is_front).slice(0, 20).map((p) => p.label).join('; ');
  return chart({description, ...options}, (canvas) => {
    const shown = points.filter((p) => fits(p.x, options.x) && fits(p.y, options.y));
    const equal = options.diagonal ? shown.flatMap((p) => [p.x, p.y, p.low, p.high]) : null;
    const plot = axes(
        canvas,
        equal ??
            [
              ...shown.flatMap((p) => [p.x, p.xLow, p.xHigh]),
              ...(options.lines ?? []).map((l) => l.x)
            ],
        equal ?? shown.flatMap((p) => [p.y, p.low, p.high]), options.x, options.y,
        options.height ?? 340);
    if (options.diagonal) diagonal(canvas, plot);
    for (const line of options.lines ?? []) verticalLimit(canvas, plot, line, options.x.unit);
    for (const color of new Set(shown.filter((p) => p.is_front).map((p) => p.color ?? 0)))
      frontLine(canvas, plot, shown.filter((p) => p.is_front && (p.color ?? 0) === color), color);
    if (shown.length > DENSE) canvas.root.classList.add('dense');
    // Points of the front lie above the others.
    for (const p of [...shown].sort((a, b) => (a.is_front ? 1 : 0) - (b.is_front ? 1 : 0)))
      point(canvas, plot, p, options);
  });
}

const fits = (value, axis) => Number.isFinite(value) && (!axis.log || value > 0);

function diagonal(canvas, plot) {
  const low = Math.max(plot.x.low, plot.y.low), high = Math.min(plot.x.high, plot.y.high);
  canvas.add('line', {
    x1: plot.x.at(low),
    y1: plot.y.at(low),
    x2: plot.x.at(high),
    y2: plot.y.at(high),
    class: 'roof'
  });
}

function verticalLimit(canvas, plot, line, unit) {
  const at = plot.x.at(line.x);
  if (!(at >= plot.left && at <= plot.right)) return;
  canvas.add('line', {x1: at, x2: at, y1: plot.top, y2: plot.bottom, class: 'limit'});
  const text = `${line.label} ${format(line.x, unit)}`;
  const before = at + textWidth(text) + 6 > plot.right;
  canvas.text(
      before ? at - 4 : at + 4, plot.top + 12, text,
      {class: 'limit-label', 'text-anchor': before ? 'end' : 'start'});
}

function frontLine(canvas, plot, points, color) {
  const sorted =
      [...points].sort((a, b) => a.x - b.x).map((p) => ({x: plot.x.at(p.x), y: plot.y.at(p.y)}));
  canvas.add('path', {d: pathOf(sorted), class: `line ${colorClass(color)}`});
}

function point(canvas, plot, p, options) {
  const x = plot.x.at(p.x), y = plot.y.at(p.y);
  const group = canvas.add('g', {class: p.muted ? 'muted' : null});
  const low = p.low > 0 || !options.y.log ? p.low : undefined;
  if (low !== undefined && p.high !== undefined && low !== p.high)
    group.append(
        svg('line', {x1: x, x2: x, y1: plot.y.at(low), y2: plot.y.at(p.high), class: 'whisker'}));
  if (p.xLow !== undefined && p.xHigh !== undefined && p.xLow !== p.xHigh)
    group.append(svg(
        'line', {x1: plot.x.at(p.xLow), x2: plot.x.at(p.xHigh), y1: y, y2: y, class: 'whisker'}));
  group.append(svg('circle', {cx: x, cy: y, r: 12, class: 'hit'}));
  group.append(svg('circle', {
    cx: x,
    cy: y,
    r: p.radius ?? (p.is_front ? 5 : 3.5),
    class: `dot ${colorClass(p.color ?? 0)}`
  }));
  canvas.mark(group, {x, y}, [
    p.label, `${options.y.label}: ${formatInterval(p.y, p.low, p.high, options.y.unit)}`,
    `${options.x.label}: ${formatInterval(p.x, p.xLow, p.xHigh, options.x.unit)}`,
    ...linesOf(p.note)
  ]);
}

/**
 * The roofline: kernels by arithmetic intensity and rate, below what the data sheet allows.
 * @param {{name: string, intensity: number, flops_per_s: number, share: number,
 *          note?: string|string[], color?: number}[]} points
 *   `intensity` in FLOP/byte; `share`: of the time, 0 to 1, shown as the size of the point
 * @param {{name: string, flops_per_s: number, bytes_per_s: number}[]} roofs
 * @param {{title: string, description?: string, legend?: {name: string, color: number}[]}} options
 */
export function roofline(points, roofs, options) {
  const xAxis = {label: 'arithmetic intensity, FLOP per byte', unit: '', log: true};
  const yAxis = {label: 'work per second', unit: 'FLOP/s', log: true};
  const shown = points.filter((p) => fits(p.intensity, xAxis) && fits(p.flops_per_s, yAxis));
  const description = roofs
                          .map(
                              (r) => `${r.name}: at most ${format(r.flops_per_s, 'FLOP/s')}, ` +
                                  `memory ${format(r.bytes_per_s, 'bytes/s')}`)
                          .join('; ');
  return chart({description, ...options}, (canvas) => {
    const ridges = roofs.map((r) => r.flops_per_s / r.bytes_per_s);
    const plot = axes(
        canvas, [...shown.map((p) => p.intensity), ...ridges.map((r) => r * 4)],
        [...shown.map((p) => p.flops_per_s), ...roofs.map((r) => r.flops_per_s)], xAxis, yAxis,
        360);
    drawRoofs(canvas, plot, roofs);
    // Large points first, so that small ones can be reached.
    for (const p of [...shown].sort((a, b) => (b.share ?? 0) - (a.share ?? 0))) {
      point(
          canvas, plot, {
            x: p.intensity,
            y: p.flops_per_s,
            label: p.name,
            note: p.note,
            color: p.color,
            radius: 3 + 13 * Math.sqrt(Math.max(0, p.share ?? 0))
          },
          {x: xAxis, y: yAxis});
    }
  });
}

/** Each roof: memory times intensity up to the ridge, then flat. */
function drawRoofs(canvas, plot, roofs) {
  const screen = (p) => ({x: plot.x.at(p.x), y: plot.y.at(p.y)});
  let last = -Infinity;  // where the label above stands
  for (const roof of [...roofs].sort((a, b) => b.flops_per_s - a.flops_per_s)) {
    const ridge = roof.flops_per_s / roof.bytes_per_s;
    const start = Math.max(plot.x.low, plot.y.low / roof.bytes_per_s);
    const slope = start < ridge ?
        [{x: start, y: start * roof.bytes_per_s}, {x: ridge, y: roof.flops_per_s}] :
        [{x: plot.x.low, y: roof.flops_per_s}];
    canvas.add(
        'path',
        {d: pathOf([...slope, {x: plot.x.high, y: roof.flops_per_s}].map(screen)), class: 'roof'});
    const y = Math.max(plot.y.at(roof.flops_per_s) - 5, last + 14);
    canvas.text(
        plot.right - 2, y, `${roof.name} ${format(roof.flops_per_s, 'FLOP/s')}`,
        {class: 'roof-label', 'text-anchor': 'end'});
    last = y;
    if (roof === roofs[0] && start < ridge) memoryLabel(canvas, slope.map(screen), roof, plot);
  }
}

/** The bandwidth, above the middle of the slope. */
function memoryLabel(canvas, [from, to], roof, plot) {
  const text = `memory ${format(roof.bytes_per_s, 'bytes/s')}`;
  const x = Math.max((from.x + to.x) / 2 - 12, plot.left + textWidth(text) + 6);
  const along = (x - from.x) / (to.x - from.x);
  if (along > 0.95) return;
  canvas.text(
      x, from.y + along * (to.y - from.y) - 8, text, {class: 'roof-label', 'text-anchor': 'end'});
}

// ---- Lines and areas --------------------------------------------------------------------------

/**
 * Lines with bands for their intervals, named at their ends.
 * @param {{name: string, points: {x: number, y: number, low?: number, high?: number,
 *          note?: string|string[]}[]}[]} series
 * @param {{title: string, x: Axis, y: Axis, description?: string, height?: number,
 *          limit?: {value: number, label: string}}} options  `limit`: a line across, along y
 */
export function lines(series, options) {
  const legend = series.length > 1 ? series.map((s, color) => ({name: s.name, color})) : [];
  const description =
      series
          .map(
              (s) => `${s.name}: ${
                  s.points
                      .map(
                          (p) => `${format(p.y, options.y.unit)} at ${format(p.x, options.x.unit)}`)
                      .slice(0, 20)
                      .join(', ')}`)
          .join('; ');
  return chart({description, legend, ...options}, (canvas) => {
    const all = series.flatMap((s) => s.points);
    const plot = axes(
        canvas, all.map((p) => p.x),
        [...all.flatMap((p) => [p.y, p.low, p.high]), options.limit?.value], options.x, options.y,
        options.height ?? 300);
    if (options.limit) horizontalLimit(canvas, plot, options.limit, options.y.unit);
    series.forEach((s, i) => {
      const points = s.points.filter((p) => fits(p.x, options.x) && fits(p.y, options.y));
      band(canvas, plot, points, i);
      canvas.add('path', {
        d: pathOf(points.map((p) => ({x: plot.x.at(p.x), y: plot.y.at(p.y)}))),
        class: `line ${colorClass(i)} dash${i % 4}`
      });
      for (const p of points)
        point(canvas, plot, {...p, label: s.name, color: i}, {x: options.x, y: options.y});
    });
  });
}

/** The intervals as a band, between neighbors that both have one. */
function band(canvas, plot, points, color) {
  const has = (p) => Number.isFinite(p.low) && Number.isFinite(p.high);
  const at = (value, p) => ({x: plot.x.at(p.x), y: plot.y.at(value)});
  for (let i = 1; i < points.length; i += 1) {
    const [a, b] = [points[i - 1], points[i]];
    if (!has(a) || !has(b)) continue;
    const outline = [at(a.high, a), at(b.high, b), at(b.low, b), at(a.low, a)];
    canvas.add('path', {d: pathOf(outline) + 'Z', class: `band ${colorClass(color)}`});
  }
}

function horizontalLimit(canvas, plot, limit, unit) {
  const y = plot.y.at(limit.value);
  canvas.add('line', {x1: plot.left, x2: plot.right, y1: y, y2: y, class: 'limit'});
  canvas.text(
      plot.right - 2, y - 5, `${limit.label} ${format(limit.value, unit)}`,
      {class: 'limit-label', 'text-anchor': 'end'});
}

/**
 * Parts that lie on each other, over steps of equal width: memory over time.
 * @param {{label: string, values: number[], note?: string|string[]}[]} steps
 *   `values`: one for each name
 * @param {{title: string, names: string[], unit?: string, xLabel?: string, description?: string,
 *          limit?: {value: number, label: string}}} options
 */
export function stacked(steps, options) {
  const unit = options.unit ?? 'count';
  const total = (step) => step.values.reduce((sum, value) => sum + value, 0);  // height of the pile
  const used = options.names.map((name, i) => ({name, color: i}))
                   .filter((_, i) => steps.some((s) => s.values[i] > 0));
  const description = `${steps.length} steps of ${used.map((u) => u.name).join(', ')}`;
  return chart({description, legend: used, ...options}, (canvas) => {
    const tops = steps.map(total);
    const showsLimit = options.limit && options.limit.value < 2 * Math.max(...tops);
    const plot = axes(
        canvas, [0, steps.length], [0, ...tops, showsLimit ? options.limit.value : 0],
        {label: options.xLabel ?? 'step', unit: 'count'}, {label: options.yLabel ?? '', unit}, 320);
    const width = (plot.right - plot.left) / Math.max(1, steps.length);
    const sums = steps.map(() => 0);
    for (const {color} of used) {
      const lower = [...sums];
      steps.forEach((s, i) => {
        sums[i] += s.values[color];
      });
      const edge = (values) =>
          values.flatMap((v, i) => [{x: plot.left + i * width, y: plot.y.at(v)}, {
                           x: plot.left + (i + 1) * width,
                           y: plot.y.at(v)
                         }]);
      canvas.add('path', {
        d: pathOf([...edge(sums), ...edge(lower).reverse()]) + 'Z',
        class: `fill ${colorClass(color)}`
      });
    }
    if (showsLimit) horizontalLimit(canvas, plot, options.limit, unit);
    steps.forEach((step, i) => {
      const node = canvas.add('rect', {
        x: plot.left + i * width,
        y: plot.top,
        width,
        height: plot.bottom - plot.top,
        class: 'hit column'
      });
      canvas.mark(node, {x: plot.left + (i + 0.5) * width, y: plot.y.at(tops[i])}, [
        step.label, ...linesOf(step.note),
        ...used.filter((u) => step.values[u.color] > 0)
            .map((u) => `${u.name} ${format(step.values[u.color], unit)}`)
      ]);
    });
  });
}
