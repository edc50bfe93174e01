// The frame of all charts: a <figure> with its title and legend, the SVG inside, and marks that
// explain themselves. A figure draws itself again when its width changes, and for print.

import {el, freshId, printable, svg} from './dom.js';

const LETTER = 6.7;         // px, mean width of a letter at 12 px, where it cannot be measured
const DEFAULT_WIDTH = 720;  // px, until a chart is in the page
const PAPER_WIDTH = 680;    // px, of a page in print
const COLORS = 8;           // --c0 … --c7 of style.css

let pen = null;
/** The font is asked for once: to ask makes the browser work out all styles. */
function makePen() {
  const made = document.createElement('canvas').getContext('2d');
  if (made) made.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return made;
}

/** Width of a text of a chart, in px. */
export function textWidth(text) {
  pen ??= makePen();
  if (!pen) return text.length * LETTER;
  return pen.measureText(text).width;
}

/** The text, or its start and end where it has too little room: names often differ at the end. */
function shortened(text, room) {
  if (textWidth(text) <= room) return text;
  const cut = (kept) =>
      text.slice(0, Math.ceil(kept / 2)) + '…' + text.slice(text.length - Math.floor(kept / 2));
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
/** What the last chart got: a new one will likely get the same, and need not be drawn twice. */
let usualWidth = DEFAULT_WIDTH;

function watch(figure) {
  if (typeof ResizeObserver === 'undefined') return;
  observer ??= new ResizeObserver((entries) => {
    for (const entry of entries) {
      drawers.get(entry.target)?.(entry.contentRect.width);
      if (entry.contentRect.width > 0) usualWidth = entry.contentRect.width;
    }
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
export function chart(options, draw) {
  const tip = el('div', {class: 'tip', role: 'status', hidden: true});
  const holder = el('div', {class: 'plot'});
  const figure =
      el('figure', {class: 'chart'}, el('figcaption', null, options.title),
         legendOf(options.legend), holder, tip);
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
  redraw(usualWidth);
  drawers.set(figure, redraw);
  watch(figure);
  return figure;
}

function legendOf(entries) {
  if (!entries || entries.length === 0) return null;
  return el(
      'ul', {class: 'legend'},
      entries.map(
          (e) =>
              el('li', null,
                 svg('svg', {width: 12, height: 12, 'aria-hidden': 'true'},
                     svg('rect',
                         {width: 12, height: 12, rx: 2, class: `fill ${colorClass(e.color)}`})),
                 e.name)));
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
    const hide = () => {
      this.tip.hidden = true;
    };
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
    const to = {
      ArrowRight: here + 1,
      ArrowDown: here + 1,
      ArrowLeft: here - 1,
      ArrowUp: here - 1,
      Home: 0,
      End: this.marks.length - 1
    }[event.key];
    if (event.key === 'Escape') this.tip.hidden = true;
    if (to === undefined || !this.marks[to]) return;
    event.preventDefault();
    node.setAttribute('tabindex', '-1');
    this.marks[to].setAttribute('tabindex', '0');
    this.marks[to].focus();
  }

  showTip(at, lines) {
    const shown = lines.filter(Boolean);
    this.tip.replaceChildren(
        ...shown.map((line, i) => el(i === 0 ? 'strong' : 'span', null, line)));
    this.tip.hidden = false;
    const left =
        Math.min(Math.max(4, at.x + 12), Math.max(4, this.width - this.tip.offsetWidth - 4));
    const top = this.svgTop() + at.y + 14;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${top}px`;
  }

  svgTop() {
    return this.root.ownerSVGElement?.parentNode?.offsetTop ?? 0;
  }

  done() {
    const title = freshId('t'), description = freshId('d');
    return svg(
        'svg', {
          width: this.width,
          height: this.height,
          viewBox: `0 0 ${this.width} ${this.height}`,
          role: this.marks.length > 0 ? 'group' : 'img',
          'aria-roledescription': 'chart',
          'aria-labelledby': `${title} ${description}`,
        },
        svg('title', {id: title}, this.options.title),
        svg('desc', {id: description}, this.options.description ?? ''), this.root);
  }
}

/** Lines of an explanation. */
export const linesOf = (note) => (note === undefined || note === null ? [] : [note].flat());

/** A path through points on screen. */
export const pathOf = (points) =>
    points.map((p, i) => `${i === 0 ? 'M' : 'L'}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join('');
