// A panel: one answer, and how it is saved and asked elsewhere.

import {ask, askJob, askJson} from './ask.js';
import {el} from './dom.js';
import {copyText, fileName, saveFile, svgText} from './files.js';
import {view} from './views.js';

/** @typedef {import('./results.js').Part} Part */

/** The model in names of files. */
const subject = (state) => state.model || 'model';

/** Types and endings of the files that an answer can be saved as. */
const SAVED = [
  {name: 'JSON', format: 'json', type: 'application/json'},
  {name: 'CSV', format: 'csv', type: 'text/csv'},
  {name: 'HTML report', format: 'html', type: 'text/html'},
];
const COPIED = [{name: 'Copy command line', field: 'command_line'}, {name: 'Copy Python', field: 'python'}];

/** A panel that keeps what it shows until a new answer is there. */
export class Panel {
  /** @param {(text: string) => void} say tells people what was done */
  constructor(id, say) {
    this.say = say;
    this.part = null;
    this.title = el('h2', {id: `panel-${id}`});
    this.above = el('div', {class: 'above'});
    this.content = el('div', {class: 'content'});
    this.tools = el('div', {class: 'panel-tools'});
    this.element = el('section', {class: 'panel', 'data-panel': id, 'aria-labelledby': `panel-${id}`},
        el('header', null, this.title, this.above), this.content, this.tools);
  }

  /** Shows a part; throws Problem, or AbortError where a newer state came. @param {Part} part */
  async show(part, state, signal) {
    this.element.setAttribute('aria-busy', 'true');
    this.title.textContent = part.title;
    if (!this.part) this.content.replaceChildren(el('progress', {'aria-label': 'The answer is on its way'}));
    const content = part.make ? await part.make(signal) : view(await this.answer(part, signal));
    if (signal.aborted) return;
    this.part = part;
    this.state = state;
    this.above.replaceChildren(...[part.above].flat().filter(Boolean));
    for (const line of content.querySelectorAll('pre')) line.after(this.copyButton(line));
    this.content.replaceChildren(content);
    this.tools.replaceChildren(...this.buttons());
    this.element.removeAttribute('aria-busy');
    this.element.classList.remove('stale');
  }

  answer(part, signal) {
    if (!part.slow) return askJson(part.question, part.body, {}, signal);
    return askJob(part.question, part.body, ({done, total, unit}) => part.slow(`${done} of ${total} ${unit}`), signal);
  }

  /** What it shows is no answer to what is asked now. */
  outdate() {
    this.element.removeAttribute('aria-busy');
    this.element.classList.add('stale');
    if (!this.part) this.content.replaceChildren();
  }

  /** Beside a line to be run elsewhere: the command of a server or a training script. */
  copyButton(line) {
    return el('button', {type: 'button', class: 'copy', onclick: () => this.act(async () => {
      await copyText(line.textContent);
      return 'Copied.';
    })}, 'Copy');
  }

  buttons() {
    const button = (name, act) => el('button', {type: 'button', onclick: () => this.act(act)}, name);
    const charts = this.content.querySelector('figure.chart svg') ? [button('SVG', () => this.saveCharts())] : [];
    if (!this.part.question) return charts;
    return [el('span', {class: 'label'}, 'Save as'), SAVED.map((file) => button(file.name, () => this.save(file))), charts,
      el('span', {class: 'gap'}), COPIED.map((text) => button(text.name, () => this.copy(text)))].flat();
  }

  async act(work) {
    try {
      this.say(await work());
    } catch (error) {
      this.say(error.message);
    }
  }

  async save({format, type, name}) {
    const response = await ask(this.part.question, this.part.body, {format});
    const file = fileName([subject(this.state), this.state.scenario, this.part.id], format);
    saveFile(file, type, await response.text());
    return `${name} saved as ${file}`;
  }

  saveCharts() {
    const charts = [...this.content.querySelectorAll('figure.chart')];
    charts.forEach((chart, i) => {
      const title = chart.querySelector('figcaption')?.textContent ?? String(i);
      saveFile(fileName([subject(this.state), this.part.id, title], 'svg'), 'image/svg+xml', svgText(chart.querySelector('.plot svg')));
    });
    return `${charts.length} charts saved`;
  }

  async copy({name, field}) {
    const calls = await askJson(this.part.question, this.part.body, {format: 'calls'});
    await copyText(calls[field]);
    return `Copied: ${calls[field]}`;
  }
}
