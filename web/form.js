// The fields of what is asked.

import {el} from './dom.js';
import {modelText} from './files.js';
import {formatBytes, formatSi} from './format.js';
import {picker} from './picker.js';
import {scenarioOf, SCENARIOS} from './scenarios.js';
import {field, settingsPanel, showProblem} from './settings.js';

/**
 * @typedef {object} App What fields read and change.
 * @property {import('./state.js').State} state what is asked
 * @property {{models: object[], gpus: object[]}} known catalogues of the service
 * @property {HTMLFormElement} form
 * @property {(part: object, how?: {rebuild: boolean}) => void} change takes a change, and asks
 * @property {(name: string, value: string, message: string) => void} setOption
 * @property {(scenario: object) => Promise<object[]>} optionsFor
 */

const byId = (id) => document.getElementById(id);

/** The radio buttons stay, so that the one that was chosen keeps the focus. */
function scenarioField(app) {
  const box = byId('scenarios');
  for (const input of box.querySelectorAll('input')) input.checked = input.value === app.state.scenario;
  if (box.firstChild) return;
  box.replaceChildren(...SCENARIOS.map((scenario) => el('label', null,
      el('input', {type: 'radio', name: 'scenario', value: scenario.id, checked: scenario.id === app.state.scenario,
        onchange: () => app.change({scenario: scenario.id}, {rebuild: true})}),
      el('span', null, scenario.title))));
}

function modelEntries(known) {
  return known.models.map((model) => ({
    value: model.name, label: model.name, detail: `${model.family}, ${formatSi(model.parameters, '')} parameters`,
    words: `${model.name} ${model.family} ${model.note ?? ''}`.toLowerCase(),
  }));
}

/** Asks for the model of a file. @param {App} app */
export async function takeFile(app, file) {
  try {
    app.change({content: await modelText(file), model: file.name}, {rebuild: true});
  } catch (error) {
    showProblem(app.form, 'model', error.message);
  }
}

function modelField(app) {
  const {element, input} = picker({
    label: 'Model', hint: 'Type to find one', entries: modelEntries(app.known), keep: true,
    onpick: (entry) => app.change({model: entry.value, content: ''}, {rebuild: Boolean(app.state.content)}),
    onother: (text) => app.change({model: text, content: ''}, {rebuild: Boolean(app.state.content)}),
  });
  input.value = app.state.model;
  const file = el('input', {type: 'file', hidden: true, 'aria-hidden': 'true', tabindex: '-1',
    onchange: () => { if (file.files[0]) takeFile(app, file.files[0]); }});
  const hint = app.state.content ? 'The content of a file of yours' : 'or drop one anywhere';
  byId('model-field').replaceChildren(el('div', {'data-option': 'model'}, element,
      el('p', {class: 'field-problem', 'data-problem': 'model'}),
      el('p', {class: 'beside'}, el('button', {type: 'button', onclick: () => file.click()}, 'Open a config.json or ONNX file'), hint), file));
}

function gpuEntries(known) {
  return known.gpus.map((gpu) => ({
    value: gpu.aliases[0] ?? gpu.id, label: gpu.name,
    detail: `${formatBytes(gpu.memory_bytes)}, ${formatSi(gpu.memory_bytes_per_s, 'B/s')}`,
    words: [gpu.name, gpu.id, gpu.architecture, ...gpu.aliases].join(' ').toLowerCase(),
  }));
}

function gpuField(app) {
  const {element, input} = picker({
    label: 'GPUs', hint: 'Add a GPU', entries: gpuEntries(app.known),
    onpick: (entry) => addGpu(app, entry.value), onother: (text) => addGpu(app, text),
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Backspace' && input.value === '') removeGpu(app, app.state.gpus.at(-1));
  });
  const chips = app.state.gpus.map((gpu) => el('li', null, gpu,
      el('button', {type: 'button', 'aria-label': `Remove ${gpu}`, onclick: () => removeGpu(app, gpu)}, '×')));
  byId('gpu-field').replaceChildren(el('div', {'data-option': 'gpus'}, element,
      el('ul', {class: 'chips', 'aria-label': 'Chosen GPUs'}, chips), el('p', {class: 'field-problem', 'data-problem': 'gpus'})));
}

function addGpu(app, gpu) {
  app.change({gpus: [...new Set([...app.state.gpus, gpu])]});
  gpuField(app);
  byId('gpu-field').querySelector('input').focus();
}

function removeGpu(app, gpu) {
  app.change({gpus: app.state.gpus.filter((other) => other !== gpu)});
  gpuField(app);
  byId('gpu-field').querySelector('input').focus();
}

function jobField(app) {
  const box = byId('job-field');
  box.hidden = app.state.scenario !== 'share';
  if (box.hidden) return;
  const set = (i, text) => app.change({jobs: app.state.jobs.with(i, text)});
  const names = el('datalist', {id: 'job-models'}, app.known.models.map((model) => el('option', {value: model.name})));
  const rows = app.state.jobs.map((job, i) => el('div', {class: 'row'},
      el('input', {type: 'text', value: job, list: 'job-models', spellcheck: 'false', 'aria-label': `Job ${i + 1}`,
        oninput: (event) => set(i, event.target.value)}),
      el('button', {type: 'button', 'aria-label': `Remove job ${i + 1}`,
        onclick: () => app.change({jobs: app.state.jobs.toSpliced(i, 1)}, {rebuild: true})}, '×')));
  box.replaceChildren(el('div', {'data-option': 'job'}, el('span', {class: 'group-label'}, 'Jobs'), rows, names,
      el('button', {type: 'button', onclick: () => app.change({jobs: [...app.state.jobs, 'gpt2']}, {rebuild: true})}, 'Add a job'),
      el('p', {class: 'help'}, 'A model and its options: gpt2 mode=training batch=4'),
      el('p', {class: 'field-problem', 'data-problem': 'job'})));
}

function rateField(app) {
  const box = byId('rate-field');
  box.hidden = app.state.scenario !== 'server';
  if (box.hidden) return;
  const input = el('input', {id: 'rates', type: 'text', value: app.state.rates, inputmode: 'decimal',
    'aria-describedby': 'rates-help', oninput: () => app.change({rates: input.value})});
  box.replaceChildren(el('div', {'data-option': 'rate'}, el('label', {for: 'rates'}, 'Requests per second to try'), input,
      el('p', {id: 'rates-help', class: 'help'}, 'A list: 1,2,4,8. The service simulates each load on each GPU.'),
      el('p', {class: 'field-problem', 'data-problem': 'rate'})));
}

/** All fields of what is asked. @param {App} app */
export async function buildForm(app) {
  const asked = app.state.scenario;
  scenarioField(app);
  modelField(app);
  byId('model-field').hidden = asked === 'share';
  gpuField(app);
  jobField(app);
  rateField(app);
  const scenario = scenarioOf(asked);
  const options = await app.optionsFor(scenario);
  if (asked !== app.state.scenario) return;  // another one was chosen meanwhile
  const value = (option) => app.state.options[option.name] ?? '';
  byId('settings').replaceChildren(settingsPanel(options,
      (option) => field(option, value(option), scenario.usual[option.name], app.setOption),
      (option) => value(option) !== '' || scenario.usual[option.name] !== undefined));
}
