// Scales and axes of plots: linear and logarithmic, with round ticks in the unit that is shown.

import {textWidth} from './canvas.js';
import {format} from './format.js';

/**
 * @typedef {object} Axis  What is along an axis.
 * @property {string} label  "time"
 * @property {string} [unit]  of `format` in format.js: 's', 'bytes', 'FLOP/s', 'share', 'tokens/s'
 * @property {boolean} [log]  logarithmic: values of 0 and below are not shown
 * @property {boolean} [zero]  a linear axis that begins at the smallest value has false
 */
/** 1, 2 or 5 times a power of ten: about `lines` steps up to `size`. */
function roundStep(size, lines) {
  const rough = size / lines;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
}

/** Bytes are divided by 1024, long times by 3600: steps are round in the unit that is shown. */
function unitSize(top, unit) {
  if (unit === 'hours') return top >= 3600 ? 3600 : 1;
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
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i += 1)
    ticks.push(i * step);
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
export function scaleOf(values, axis, from, to) {
  const shown = values.filter((v) => Number.isFinite(v) && (!axis.log || v > 0));
  if (axis.log) {
    const low = shown.length ? Math.min(...shown) : 1;
    const high = shown.length ? Math.max(...shown) : 10;
    const room = Math.max(1.15, (high / low) ** 0.04);
    return logScale(low / room, high * room, from, to);
  }
  const high = Math.max(...shown, 0), least = Math.min(...shown, high);
  const low =
      axis.zero === false && least < high ? least - (high - least) * 0.05 : Math.min(0, least);
  return linearScale(low, high > low ? high + (high - low) * 0.05 : low + 1, from, to, axis.unit);
}

/** Grid, ticks and labels of a plot; returns its scales. */
export function axes(canvas, xs, ys, xAxis, yAxis, height) {
  const right = canvas.width - 14, top = 24, bottom = height - 44;
  canvas.height = height;
  const y = scaleOf(ys, yAxis, bottom, top);
  const left = 14 + Math.max(26, ...y.ticks.map((tick) => textWidth(tickText(tick, yAxis.unit))));
  const x = scaleOf(xs, xAxis, left, right);
  canvas.text(4, 13, yAxis.label, {class: 'axis-label'}, canvas.width - 8);
  canvas.text(
      (left + right) / 2, height - 6, xAxis.label, {class: 'axis-label', 'text-anchor': 'middle'},
      right - left);
  for (const tick of y.ticks) {
    canvas.add('line', {x1: left, x2: right, y1: y.at(tick), y2: y.at(tick), class: 'grid'});
    canvas.text(
        left - 6, y.at(tick) + 4, tickText(tick, yAxis.unit),
        {class: 'tick', 'text-anchor': 'end'});
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
export function tickText(value, unit) {
  return format(value, unit)
      .replace(/(\d)\.0+(?=\D|$)/, '$1')
      .replace(/(\.\d*[1-9])0+(?=\D|$)/, '$1');
}
