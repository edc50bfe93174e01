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

import {chart, colorClass, linesOf, textWidth} from './canvas.js';
import {printable, svg} from './dom.js';
import {format, formatInterval} from './format.js';
import {scaleOf, tickText} from './scales.js';

export {lines, roofline, scatter, stacked} from './plots.js';

/**
 * @typedef {object} Mark  A value with what is said of it.
 * @property {string} label  name
 * @property {number|null} value  in the chart's unit; null: there is none
 * @property {number} [low]  end of the 80 % interval
 * @property {number} [high]  end of the 80 % interval
 * @property {string|string[]} [note]  lines of the explanation
 * @property {boolean} [muted]  less important: drawn pale
 */

const LABEL_ROOM = 260;  // px, of the names beside bars, at most
const NARROW = 520;      // px: below, names stand above their bars

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
    const narrow = canvas.width < NARROW;
    const texts = rows.map((row) => format(row.value, unit));
    const textRoom = Math.max(0, ...texts.map(textWidth)) + 12;
    const labelRoom = narrow ? 0 : labelWidth(rows, canvas.width);
    const step = narrow ? 42 : 28, top = options.limit ? 22 : 4;
    const left = narrow ? 2 : labelRoom, right = canvas.width - textRoom - 4;
    const most =
        Math.max(0, ...rows.flatMap((r) => [r.value ?? 0, r.high ?? 0]), options.limit?.value ?? 0);
    const x = (value) => left + (most > 0 ? (value / most) * (right - left) : 0);
    rows.forEach((row, i) => {
      const y = top + i * step + (narrow ? 18 : 5);
      if (narrow)
        canvas.text(left, y - 5, row.label, {class: 'label'}, canvas.width - 8);
      else
        canvas.text(
            labelRoom - 8, y + 13, row.label, {class: 'label', 'text-anchor': 'end'},
            labelRoom - 8);
      const group = canvas.add('g', {class: row.muted ? 'muted' : null});
      group.append(
          svg('rect', {x: left, y: y - 3, width: canvas.width - left, height: 24, class: 'hit'}));
      if (row.value !== null && row.value !== undefined) {
        group.append(svg('rect', {
          x: left,
          y,
          width: Math.max(1, x(row.value) - left),
          height: 18,
          rx: 2,
          class: `fill ${colorClass(row.color ?? 0)}`
        }));
        whisker(group, x, row, y + 9);
      }
      const end = Math.max(x(row.value ?? 0), x(row.high ?? 0));
      group.append(svg('text', {x: end + 6, y: y + 13, class: 'value'}, texts[i]));
      canvas.mark(
          group, {x: x(row.value ?? 0), y: y + 14},
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
  if (row.low === undefined || row.low === null || row.high === undefined || row.high === null)
    return;
  if (row.low === row.high) return;
  const low = x(row.low), high = x(row.high);
  group.append(
      svg('path',
          {d: `M${low} ${y - 5}v10M${low} ${y}H${high}M${high} ${y - 5}v10`, class: 'whisker'}));
}

function limitAcross(canvas, x, limit, unit) {
  canvas.add('line', {x1: x, x2: x, y1: 16, y2: canvas.height, class: 'limit'});
  const text = `${limit.label} ${format(limit.value, unit)}`;
  const before = x + textWidth(text) + 6 > canvas.width;
  canvas.text(
      before ? x - 4 : x + 4, 12, text,
      {class: 'limit-label', 'text-anchor': before ? 'end' : 'start'});
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
  const valueOf = (name) =>
      single.filter((p) => p.name === name).map((p) => ` ${format(p.value, unit)}`).join('');
  const legend = names.map((name, color) => ({name: name + valueOf(name), color}));
  const description =
      rows.map(
              (r) => `${r.label}: ${
                  r.parts.map((p) => `${p.name} ${format(p.value, unit)}`).join(', ')}`)
          .join('; ');
  return chart({description, legend, ...options}, (canvas) => {
    const narrow = canvas.width < NARROW, top = options.limit ? 22 : 4, step = narrow ? 46 : 34;
    const left = narrow ? 2 : labelWidth(rows, canvas.width), right = canvas.width - 10;
    const sum = (row) => row.parts.reduce((total, part) => total + part.value, 0);  // of lengths
    const most = Math.max(...rows.map(sum), options.limit?.value ?? 0);
    const x = (value) => left + (most > 0 ? (value / most) * (right - left) : 0);
    rows.forEach((row, i) => {
      const y = top + i * step + (narrow && row.label ? 18 : 4);
      if (narrow)
        canvas.text(left, y - 5, row.label, {class: 'label'}, canvas.width - 8);
      else
        canvas.text(left - 8, y + 16, row.label, {class: 'label', 'text-anchor': 'end'}, left - 8);
      let at = 0;
      for (const part of row.parts) {
        if (!(part.value > 0)) continue;
        const from = x(at), to = x(at + part.value);
        at += part.value;
        const group = canvas.add('g');
        group.append(svg('rect', {
          x: from,
          y,
          width: Math.max(0.5, to - from - 0.5),
          height: 22,
          class: `fill ${colorClass(names.indexOf(part.name))}`
        }));
        canvas.mark(group, {x: (from + to) / 2, y: y + 18}, [
          `${row.label} ${part.name}`.trim(), format(part.value, unit),
          ...linesOf(part.note ?? row.note)
        ]);
      }
    });
    canvas.height = top + rows.length * step + 6;
    if (options.limit) limitAcross(canvas, x(options.limit.value), options.limit, unit);
  });
}

// ---- Lanes ------------------------------------------------------------------------------------

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
    const left = canvas.width < NARROW ? 80 : 150, right = canvas.width - 12, step = 26;
    const bottom = 6 + lanes.length * step;
    canvas.height = bottom + 24;
    const x = scaleOf(all.flatMap((i) => [i.start, i.end]), {unit}, left, right);
    for (const tick of x.ticks) {
      canvas.add('line', {x1: x.at(tick), x2: x.at(tick), y1: 4, y2: bottom, class: 'grid'});
      canvas.text(
          x.at(tick), bottom + 16, tickText(tick, unit), {class: 'tick', 'text-anchor': 'middle'});
    }
    lanes.forEach((lane, i) => {
      const y = 6 + i * step;
      canvas.text(left - 8, y + 15, lane.name, {class: 'label', 'text-anchor': 'end'}, left - 10);
      for (const item of lane.items) {
        const group = canvas.add('g');
        const width = Math.max(1, x.at(item.end) - x.at(item.start) - 1);
        group.append(svg('rect', {
          x: x.at(item.start),
          y,
          width,
          height: 20,
          rx: 2,
          class: `fill ${colorClass(item.color ?? i)}`
        }));
        canvas.mark(group, {x: x.at(item.start) + width / 2, y: y + 16}, [
          item.label, `${format(item.start, unit)} to ${format(item.end, unit)}`,
          ...linesOf(item.note)
        ]);
      }
    });
  });
}
