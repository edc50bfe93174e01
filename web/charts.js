// Charts as SVG, from data to an element. No library: a few kinds of marks are enough, d3 would be
// larger than all of web/, in every report, and would still leave focus, explanations and printing
// to write.
//
// A chart is a <figure> that draws itself for the width it gets (text keeps its size on a phone and
// on paper). Colors are variables of style.css, so light and dark need no redrawing. A chart is one
// stop of the Tab key; arrow keys, Home and End move between its marks, and the mark that has the
// focus or the pointer shows its explanation.
//
// Not in here: any number that is not in the data. Positions, ticks and the outline of a roof are
// all that is computed.

import {el, freshId, printable, svg} from './dom.js';
import {format, formatInterval} from './format.js';

/**
 * @typedef {object} Axis  What is along an axis.
 * @property {string} label  "time"
 * @property {string} [unit]  of `format` in format.js: 's', 'bytes', 'FLOP/s', 'share', 'tokens/s'
 * @property {boolean} [log]  logarithmic: values of 0 and below are not shown
 * @property {boolean} [zero]  a linear axis that begins at the smallest value has false
 */
/**
 * @typedef {object} Mark  A value with what is said of it.
 * @property {string} label  name
 * @property {number|null} value  in the chart's unit; null: there is none
 * @property {number} [low]  end of the 80 % interval
 * @property {number} [high]  end of the 80 % interval
 * @property {string|string[]} [note]  lines of the explanation
 * @property {boolean} [muted]  less important: drawn pale
 */

const LINE = 18;  // px, height of a line of text
const LETTER = 6.7;  // px, mean width of a letter at 12 px, where it cannot be measured
const LABEL_ROOM = 260;  // px, of the names beside bars, at most
const DEFAULT_WIDTH = 720;  // px, until the chart is in a page
const PAPER_WIDTH = 680;  // px, of a page in print
const COLORS = 8;  // --c0 … --c7 of style.css

let pen = null;
/** Width of a text of a chart, in px. */
function textWidth(text) {
  pen ??= document.createElement('canvas').getContext('2d');
  if (!pen) return text.length * LETTER;
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** The text, or its start and end where it has too little room: names often differ at the end. */
function shortened(text, room) {
  if (textWidth(text) <= room) return text;
  const cut = (kept) => text.slice(0, Math.ceil(kept / 2)) + '…' + text.slice(text.length - Math.floor(kept / 2));
  let kept = text.length - 1;
  while (kept > 2 && textWidth(cut(kept)) > room) kept -= 1;
  return cut(kept);
}

/** The class of the n-th color. */
export const colorClass = (n) => `c${n % COLORS}`;

// ---- The figure -------------------------------------------------------------------------------

/** Figures by element, so that one observer serves all of them. */
const drawers = new WeakMap();
let observer = null;

function watch(figure) {
  if (typeof ResizeObserver === 'undefined') return;
  observer ??= new ResizeObserver((entries) => {
    for (const entry of entries) drawers.get(entry.target)?.(entry.contentRect.width);
  });
  observer.observe(figure);
}

/** Print: all charts at the width of paper, and back. */
function drawForPrint(width) {
  for (const figure of document.querySelectorAll('figure.chart'))
    drawers.get(figure)?.(width ?? figure.clientWidth);
}
if (typeof window !== 'undefined') {
  window.addEventListener('beforeprint', () => drawForPrint(PAPER_WIDTH));
  window.addEventListener('afterprint', () => drawForPrint(null));
}

/**
 * A figure that `draw(canvas)` fills whenever its width changes.
 * @param {{title: string, description?: string, legend?: {name: string, color: number}[]}} options
 * @param {(canvas: Canvas) => void} draw
 */
function chart(options, draw) {
  const tip = el('div', {class: 'tip', role: 'status', hidden: true});
  const holder = el('div', {class: 'plot'});
  const figure = el('figure', {class: 'chart'},
                    el('figcaption', null, options.title), legendOf(options.legend), holder, tip);
  let drawn = 0;
  const redraw = (width) => {
    const whole = Math.round(width);
    if (whole <= 0 || whole === drawn) return;
    drawn = whole;
    tip.hidden = true;
    const canvas = new Canvas(whole, options, tip);
    draw(canvas);
    holder.replaceChildren(canvas.done());
  };
  redraw(DEFAULT_WIDTH);
  drawers.set(figure, redraw);
  watch(figure);
  return figure;
}

function legendOf(entries) {
  if (!entries || entries.length === 0) return null;
  return el('ul', {class: 'legend'}, entries.map(
      (e) => el('li', null, svg('svg', {width: 12, height: 12, 'aria-hidden': 'true'},
                                svg('rect', {width: 12, height: 12, rx: 2,
                                             class: `fill ${colorClass(e.color)}`})), e.name)));
}

/** An SVG that is being drawn: marks with explanations, and texts. */
class Canvas {
  constructor(width, options, tip) {
    this.width = width;
    this.height = 0;
    this.options = options;
    this.tip = tip;
    this.marks = [];
    this.root = svg('g');
  }

  add(name, attributes, ...children) {
    const node = svg(name, attributes, ...children);
    this.root.append(node);
    return node;
  }

  /** Text; `room` in px cuts it. */
  text(x, y, content, attributes = {}, room = Infinity) {
    const whole = printable(content);
    const shown = room === Infinity ? whole : shortened(whole, room);
    return this.add('text', {x: x.toFixed(1), y: y.toFixed(1), ...attributes}, shown);
  }

  /**
   * A mark that explains itself: `node` is drawn, `at` is where the explanation points.
   * @param {string[]} lines
   */
  mark(node, at, lines) {
    const spoken = lines.filter(Boolean).join('. ');
    node.setAttribute('role', 'img');
    node.setAttribute('aria-label', spoken);
    node.setAttribute('tabindex', this.marks.length === 0 ? '0' : '-1');
    node.classList.add('mark');
    const show = () => this.showTip(at, lines);
    const hide = () => { this.tip.hidden = true; };
    node.addEventListener('pointerenter', show);
    node.addEventListener('pointerleave', hide);
    node.addEventListener('focus', show);
    node.addEventListener('blur', hide);
    node.addEventListener('keydown', (event) => this.move(event, node));
    this.marks.push(node);
  }

  /** Arrow keys move between marks; Escape hides the explanation. */
  move(event, node) {
    const here = this.marks.indexOf(node);
    const to = {ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1,
                Home: 0, End: this.marks.length - 1}[event.key];
    if (event.key === 'Escape') this.tip.hidden = true;
    if (to === undefined || !this.marks[to]) return;
    event.preventDefault();
    node.setAttribute('tabindex', '-1');
    this.marks[to].setAttribute('tabindex', '0');
    this.marks[to].focus();
  }

  showTip(at, lines) {
    const shown = lines.filter(Boolean);
    this.tip.replaceChildren(...shown.map((line, i) => el(i === 0 ? 'strong' : 'span', null, line)));
    this.tip.hidden = false;
    const left = Math.min(Math.max(4, at.x + 12), Math.max(4, this.width - this.tip.offsetWidth - 4));
    const top = this.svgTop() + at.y + 14;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${top}px`;
  }

  svgTop() { return this.root.ownerSVGElement?.parentNode?.offsetTop ?? 0; }

  done() {
    const title = freshId('t'), description = freshId('d');
    return svg('svg', {
      width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}`,
      role: this.marks.length > 0 ? 'group' : 'img', 'aria-roledescription': 'chart',
      'aria-labelledby': `${title} ${description}`,
    }, svg('title', {id: title}, this.options.title),
    svg('desc', {id: description}, this.options.description ?? ''), this.root);
  }
}

// ---- Scales -----------------------------------------------------------------------------------

/** 1, 2 or 5 times a power of ten: about `lines` steps up to `size`. */
function roundStep(size, lines) {
  const rough = size / lines;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
}

/** Bytes are divided by 1024: steps are round in the unit that is shown. */
function unitSize(top, unit) {
  if (unit !== 'bytes') return 1;
  let size = 1;
  while (top / size >= 1024) size *= 1024;
  return size;
}

function linearScale(low, high, from, to, unit) {
  const size = unitSize(high, unit);
  const lines = Math.max(2, Math.min(8, Math.abs(to - from) / 70));
  const step = roundStep((high - low) / size, lines) * size;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i += 1) ticks.push(i * step);
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  return {at, ticks, low, high};
}

function logScale(low, high, from, to) {
  const bottom = Math.log10(low), top = Math.log10(high);
  const decades = top - bottom;
  const room = Math.abs(to - from);
  const steps = decades < 1.5 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((decades * 60) / room));
  const ticks = [];
  for (let power = Math.floor(bottom); power <= Math.ceil(top); power += 1) {
    for (const factor of steps) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001 && power % every === 0) ticks.push(value);
    }
  }
  const at = (value) => from + ((Math.log10(value) - bottom) / decades) * (to - from);
  return {at, ticks, low, high};
}

/** A scale from the values that are shown, with a little room at the ends. */
function scaleOf(values, axis, from, to) {
  const shown = values.filter((v) => Number.isFinite(v) && (!axis.log || v > 0));
  if (axis.log) {
    const low = shown.length ? Math.min(...shown) : 1;
    const high = shown.length ? Math.max(...shown) : 10;
    const room = Math.max(1.15, (high / low) ** 0.04);
    return logScale(low / room, high * room, from, to);
  }
  const high = Math.max(...shown, 0), least = Math.min(...shown, high);
  const low = axis.zero === false && least < high ? least - (high - least) * 0.05 : Math.min(0, least);
  return linearScale(low, high > low ? high + (high - low) * 0.05 : low + 1, from, to, axis.unit);
}

/** Grid, ticks and labels of a plot; returns its scales. */
function axes(canvas, xs, ys, xAxis, yAxis, height) {
  const right = canvas.width - 14, top = 24, bottom = height - 44;
  canvas.height = height;
  const y = scaleOf(ys, yAxis, bottom, top);
  const left = 14 + Math.max(26, ...y.ticks.map((tick) => textWidth(tickText(tick, yAxis.unit))));
  const x = scaleOf(xs, xAxis, left, right);
  canvas.text(4, 13, yAxis.label, {class: 'axis-label'}, canvas.width - 8);
  canvas.text((left + right) / 2, height - 6, xAxis.label, {class: 'axis-label', 'text-anchor': 'middle'},
              right - left);
  for (const tick of y.ticks) {
    canvas.add('line', {x1: left, x2: right, y1: y.at(tick), y2: y.at(tick), class: 'grid'});
    canvas.text(left - 6, y.at(tick) + 4, tickText(tick, yAxis.unit), {class: 'tick', 'text-anchor': 'end'});
  }
  let free = -Infinity;  // where the text before ends: texts do not overlap
  for (const tick of x.ticks) {
    const at = x.at(tick), text = tickText(tick, xAxis.unit), half = textWidth(text) / 2;
    canvas.add('line', {x1: at, x2: at, y1: top, y2: bottom, class: 'grid'});
    if (at - half < free + 6 || at + half > canvas.width) continue;
    canvas.text(at, bottom + 17, text, {class: 'tick', 'text-anchor': 'middle'});
    free = at + half;
  }
  canvas.add('path', {d: `M${left} ${top}V${bottom}H${right}`, class: 'frame'});
  return {x, y, left, right, top, bottom};
}

/** A round number needs no zeros behind the point: "20 ms", not "20.0 ms". */
function tickText(value, unit) {
  return format(value, unit).replace(/(\d)\.0+(?=\D|$)/, '$1').replace(/(\.\d*[1-9])0+(?=\D|$)/, '$1');
}

const linesOf = (note) => (note === undefined || note === null ? [] : [note].flat());

/** Where a value begins and ends on screen, for a path. */
const pathOf = (points) => points.map((p, i) => `${i === 0 ? 'M' : 'L'}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join('');

// ---- Bars -------------------------------------------------------------------------------------

/**
 * Bars with their intervals as whiskers and their values as text.
 * @param {Mark[]} rows
 * @param {{title: string, unit?: string, description?: string,
 *          limit?: {value: number, label: string}}} options  `limit`: a line across all bars
 */
export function bars(rows, options) {
  const unit = options.unit ?? 'count';
  return chart({description: describeRows(rows, unit), ...options}, (canvas) => {
    const narrow = canvas.width < 520;
    const texts = rows.map((row) => format(row.value, unit));
    const textRoom = Math.max(0, ...texts.map(textWidth)) + 12;
    const labelRoom = narrow ? 0 : labelWidth(rows, canvas.width);
    const step = narrow ? 42 : 28, top = options.limit ? 22 : 4;
    const left = narrow ? 2 : labelRoom, right = canvas.width - textRoom - 4;
    const most = Math.max(0, ...rows.flatMap((r) => [r.value ?? 0, r.high ?? 0]), options.limit?.value ?? 0);
    const x = (value) => left + (most > 0 ? (value / most) * (right - left) : 0);
    rows.forEach((row, i) => {
      const y = top + i * step + (narrow ? 18 : 5);
      if (narrow) canvas.text(left, y - 5, row.label, {class: 'label'}, canvas.width - 8);
      else canvas.text(labelRoom - 8, y + 13, row.label, {class: 'label', 'text-anchor': 'end'}, labelRoom - 8);
      const group = canvas.add('g', {class: row.muted ? 'muted' : null});
      group.append(svg('rect', {x: left, y: y - 3, width: canvas.width - left, height: 24, class: 'hit'}));
      if (row.value !== null && row.value !== undefined) {
        group.append(svg('rect', {x: left, y, width: Math.max(1, x(row.value) - left), height: 18, rx: 2,
                                  class: `fill ${colorClass(row.color ?? 0)}`}));
        whisker(group, x, row, y + 9);
      }
      const end = Math.max(x(row.value ?? 0), x(row.high ?? 0));
      group.append(svg('text', {x: end + 6, y: y + 13, class: 'value'}, texts[i]));
      canvas.mark(group, {x: x(row.value ?? 0), y: y + 14},
                  [row.label, formatInterval(row.value, row.low, row.high, unit), ...linesOf(row.note)]);
    });
    canvas.height = top + rows.length * step + 6;
    if (options.limit) limitAcross(canvas, x(options.limit.value), options.limit, unit);
  });
}

/** Room for the names of rows: as wide as the widest, but not more than a third of the chart. */
function labelWidth(rows, width) {
  const widest = Math.max(0, ...rows.map((r) => textWidth(printable(r.label))));
  return widest === 0 ? 2 : Math.min(LABEL_ROOM, width / 3, widest + 14);
}

function whisker(group, x, row, y) {
  if (row.low === undefined || row.low === null || row.high === undefined || row.high === null) return;
  if (row.low === row.high) return;
  const low = x(row.low), high = x(row.high);
  group.append(svg('path', {d: `M${low} ${y - 5}v10M${low} ${y}H${high}M${high} ${y - 5}v10`, class: 'whisker'}));
}

function limitAcross(canvas, x, limit, unit) {
  canvas.add('line', {x1: x, x2: x, y1: 16, y2: canvas.height, class: 'limit'});
  const text = `${limit.label} ${format(limit.value, unit)}`;
  const before = x + textWidth(text) + 6 > canvas.width;
  canvas.text(before ? x - 4 : x + 4, 12, text, {class: 'limit-label', 'text-anchor': before ? 'end' : 'start'});
}

function describeRows(rows, unit) {
  return rows.map((r) => `${r.label} ${formatInterval(r.value, r.low, r.high, unit)}`).join('; ');
}

/**
 * Bars made of parts: memory by purpose, time by what it is spent on.
 * @param {{label: string, parts: {name: string, value: number}[], note?: string|string[]}[]} rows
 * @param {{title: string, unit?: string, description?: string,
 *          limit?: {value: number, label: string}}} options
 */
export function partBars(rows, options) {
  const unit = options.unit ?? 'count';
  const names = [...new Set(rows.flatMap((r) => r.parts.map((p) => p.name)))];
  const single = rows.length === 1 ? rows[0].parts : [];
  const valueOf = (name) => single.filter((p) => p.name === name).map((p) => ` ${format(p.value, unit)}`).join('');
  const legend = names.map((name, color) => ({name: name + valueOf(name), color}));
  const description = rows.map(
      (r) => `${r.label}: ${r.parts.map((p) => `${p.name} ${format(p.value, unit)}`).join(', ')}`).join('; ');
  return chart({description, legend, ...options}, (canvas) => {
    const narrow = canvas.width < 520, top = options.limit ? 22 : 4, step = narrow ? 46 : 34;
    const left = narrow ? 2 : labelWidth(rows, canvas.width), right = canvas.width - 10;
    const sum = (row) => row.parts.reduce((total, part) => total + part.value, 0);  // of lengths
    const most = Math.max(...rows.map(sum), options.limit?.value ?? 0);
    const x = (value) => left + (most > 0 ? (value / most) * (right - left) : 0);
    rows.forEach((row, i) => {
      const y = top + i * step + (narrow && row.label ? 18 : 4);
      if (narrow) canvas.text(left, y - 5, row.label, {class: 'label'}, canvas.width - 8);
      else canvas.text(left - 8, y + 16, row.label, {class: 'label', 'text-anchor': 'end'}, left - 8);
      let at = 0;
      for (const part of row.parts) {
        if (!(part.value > 0)) continue;
        const from = x(at), to = x(at + part.value);
        at += part.value;
        const group = canvas.add('g');
        group.append(svg('rect', {x: from, y, width: Math.max(0.5, to - from - 0.5), height: 22,
                                  class: `fill ${colorClass(names.indexOf(part.name))}`}));
        canvas.mark(group, {x: (from + to) / 2, y: y + 18},
                    [`${row.label} ${part.name}`.trim(), format(part.value, unit), ...linesOf(part.note ?? row.note)]);
      }
    });
    canvas.height = top + rows.length * step + 6;
    if (options.limit) limitAcross(canvas, x(options.limit.value), options.limit, unit);
  });
}

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
    const plot = axes(canvas, equal ?? [...shown.flatMap((p) => [p.x, p.xLow, p.xHigh]),
                                        ...(options.lines ?? []).map((l) => l.x)],
                      equal ?? shown.flatMap((p) => [p.y, p.low, p.high]), options.x, options.y,
                      options.height ?? 340);
    if (options.diagonal) diagonal(canvas, plot);
    for (const line of options.lines ?? []) verticalLimit(canvas, plot, line, options.x.unit);
    for (const color of new Set(shown.filter((p) => p.is_front).map((p) => p.color ?? 0)))
      frontLine(canvas, plot, shown.filter((p) => p.is_front && (p.color ?? 0) === color), color);
    // Points of the front lie above the others.
    for (const p of [...shown].sort((a, b) => (a.is_front ? 1 : 0) - (b.is_front ? 1 : 0)))
      point(canvas, plot, p, options);
  });
}

const fits = (value, axis) => Number.isFinite(value) && (!axis.log || value > 0);

function diagonal(canvas, plot) {
  const low = Math.max(plot.x.low, plot.y.low), high = Math.min(plot.x.high, plot.y.high);
  canvas.add('line', {x1: plot.x.at(low), y1: plot.y.at(low), x2: plot.x.at(high), y2: plot.y.at(high),
                      class: 'roof'});
}

function verticalLimit(canvas, plot, line, unit) {
  const at = plot.x.at(line.x);
  if (!(at >= plot.left && at <= plot.right)) return;
  canvas.add('line', {x1: at, x2: at, y1: plot.top, y2: plot.bottom, class: 'limit'});
  const text = `${line.label} ${format(line.x, unit)}`;
  const before = at + textWidth(text) + 6 > plot.right;
  canvas.text(before ? at - 4 : at + 4, plot.top + 12, text,
              {class: 'limit-label', 'text-anchor': before ? 'end' : 'start'});
}

function frontLine(canvas, plot, points, color) {
  const sorted = [...points].sort((a, b) => a.x - b.x).map((p) => ({x: plot.x.at(p.x), y: plot.y.at(p.y)}));
  canvas.add('path', {d: pathOf(sorted), class: `line ${colorClass(color)}`});
}

function point(canvas, plot, p, options) {
  const x = plot.x.at(p.x), y = plot.y.at(p.y);
  const group = canvas.add('g', {class: p.muted ? 'muted' : null});
  const low = p.low > 0 || !options.y.log ? p.low : undefined;
  if (low !== undefined && p.high !== undefined && low !== p.high)
    group.append(svg('line', {x1: x, x2: x, y1: plot.y.at(low), y2: plot.y.at(p.high), class: 'whisker'}));
  if (p.xLow !== undefined && p.xHigh !== undefined && p.xLow !== p.xHigh)
    group.append(svg('line', {x1: plot.x.at(p.xLow), x2: plot.x.at(p.xHigh), y1: y, y2: y, class: 'whisker'}));
  group.append(svg('circle', {cx: x, cy: y, r: 12, class: 'hit'}));
  group.append(svg('circle', {cx: x, cy: y, r: p.radius ?? (p.is_front ? 5 : 3.5),
                              class: `dot ${colorClass(p.color ?? 0)}`}));
  canvas.mark(group, {x, y}, [
    p.label, `${options.y.label}: ${formatInterval(p.y, p.low, p.high, options.y.unit)}`,
    `${options.x.label}: ${formatInterval(p.x, p.xLow, p.xHigh, options.x.unit)}`, ...linesOf(p.note)]);
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
  const description = roofs.map((r) => `${r.name}: at most ${format(r.flops_per_s, 'FLOP/s')}, ` +
      `memory ${format(r.bytes_per_s, 'bytes/s')}`).join('; ');
  return chart({description, ...options}, (canvas) => {
    const ridges = roofs.map((r) => r.flops_per_s / r.bytes_per_s);
    const plot = axes(canvas, [...shown.map((p) => p.intensity), ...ridges.map((r) => r * 4)],
                      [...shown.map((p) => p.flops_per_s), ...roofs.map((r) => r.flops_per_s)],
                      xAxis, yAxis, 360);
    drawRoofs(canvas, plot, roofs);
    // Large points first, so that small ones can be reached.
    for (const p of [...shown].sort((a, b) => (b.share ?? 0) - (a.share ?? 0))) {
      point(canvas, plot, {x: p.intensity, y: p.flops_per_s, label: p.name, note: p.note, color: p.color,
                           radius: 3 + 13 * Math.sqrt(Math.max(0, p.share ?? 0))},
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
    const slope = start < ridge ? [{x: start, y: start * roof.bytes_per_s}, {x: ridge, y: roof.flops_per_s}]
                                : [{x: plot.x.low, y: roof.flops_per_s}];
    canvas.add('path', {d: pathOf([...slope, {x: plot.x.high, y: roof.flops_per_s}].map(screen)), class: 'roof'});
    const y = Math.max(plot.y.at(roof.flops_per_s) - 5, last + 14);
    canvas.text(plot.right - 2, y, `${roof.name} ${format(roof.flops_per_s, 'FLOP/s')}`,
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
  canvas.text(x, from.y + along * (to.y - from.y) - 8, text, {class: 'roof-label', 'text-anchor': 'end'});
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
  const description = series.map((s) => `${s.name}: ${s.points.map(
      (p) => `${format(p.y, options.y.unit)} at ${format(p.x, options.x.unit)}`).slice(0, 20).join(', ')}`).join('; ');
  return chart({description, legend, ...options}, (canvas) => {
    const all = series.flatMap((s) => s.points);
    const plot = axes(canvas, all.map((p) => p.x),
                      [...all.flatMap((p) => [p.y, p.low, p.high]), options.limit?.value], options.x,
                      options.y, options.height ?? 300);
    if (options.limit) horizontalLimit(canvas, plot, options.limit, options.y.unit);
    series.forEach((s, i) => {
      const points = s.points.filter((p) => fits(p.x, options.x) && fits(p.y, options.y));
      band(canvas, plot, points, i);
      canvas.add('path', {d: pathOf(points.map((p) => ({x: plot.x.at(p.x), y: plot.y.at(p.y)}))),
                          class: `line ${colorClass(i)} dash${i % 4}`});
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
  canvas.text(plot.right - 2, y - 5, `${limit.label} ${format(limit.value, unit)}`,
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
    const plot = axes(canvas, [0, steps.length], [0, ...tops, showsLimit ? options.limit.value : 0],
                      {label: options.xLabel ?? 'step', unit: 'count'},
                      {label: options.yLabel ?? '', unit}, 320);
    const width = (plot.right - plot.left) / Math.max(1, steps.length);
    const sums = steps.map(() => 0);
    for (const {color} of used) {
      const lower = [...sums];
      steps.forEach((s, i) => { sums[i] += s.values[color]; });
      const edge = (values) => values.flatMap((v, i) => [{x: plot.left + i * width, y: plot.y.at(v)},
                                                         {x: plot.left + (i + 1) * width, y: plot.y.at(v)}]);
      canvas.add('path', {d: pathOf([...edge(sums), ...edge(lower).reverse()]) + 'Z',
                          class: `fill ${colorClass(color)}`});
    }
    if (showsLimit) horizontalLimit(canvas, plot, options.limit, unit);
    steps.forEach((step, i) => {
      const node = canvas.add('rect', {x: plot.left + i * width, y: plot.top, width, height: plot.bottom - plot.top,
                                       class: 'hit column'});
      canvas.mark(node, {x: plot.left + (i + 0.5) * width, y: plot.y.at(tops[i])},
                  [step.label, ...linesOf(step.note),
                   ...used.filter((u) => step.values[u.color] > 0)
                       .map((u) => `${u.name} ${format(step.values[u.color], unit)}`)]);
    });
  });
}

/**
 * What happens on each lane, over time.
 * @param {{name: string, items: {start: number, end: number, label: string,
 *          note?: string|string[], color?: number}[]}[]} lanes
 * @param {{title: string, unit?: string, description?: string}} options
 */
export function timeline(lanes, options) {
  const unit = options.unit ?? 's';
  const description = lanes.map((lane) => `${lane.name}: ${lane.items.length}`).join('; ');
  return chart({description, ...options}, (canvas) => {
    const all = lanes.flatMap((lane) => lane.items);
    const left = canvas.width < 520 ? 80 : 150, right = canvas.width - 12, step = 26;
    const bottom = 6 + lanes.length * step;
    canvas.height = bottom + 24;
    const x = scaleOf(all.flatMap((i) => [i.start, i.end]), {unit}, left, right);
    for (const tick of x.ticks) {
      canvas.add('line', {x1: x.at(tick), x2: x.at(tick), y1: 4, y2: bottom, class: 'grid'});
      canvas.text(x.at(tick), bottom + 16, tickText(tick, unit), {class: 'tick', 'text-anchor': 'middle'});
    }
    lanes.forEach((lane, i) => {
      const y = 6 + i * step;
      canvas.text(left - 8, y + 15, lane.name, {class: 'label', 'text-anchor': 'end'}, left - 10);
      for (const item of lane.items) {
        const group = canvas.add('g');
        const width = Math.max(1, x.at(item.end) - x.at(item.start) - 1);
        group.append(svg('rect', {x: x.at(item.start), y, width, height: 20, rx: 2,
                                  class: `fill ${colorClass(item.color ?? i)}`}));
        canvas.mark(group, {x: x.at(item.start) + width / 2, y: y + 16},
                    [item.label, `${format(item.start, unit)} to ${format(item.end, unit)}`, ...linesOf(item.note)]);
      }
    });
  });
}
