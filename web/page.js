// The page: what is asked on the left, the answers on the right. No number is computed here; what
// is shown are fields of answers.

import {keepToken, list, Problem} from './ask.js';
import {el} from './dom.js';
import {copyText, modelText} from './files.js';
import {formatBytes, formatSi} from './format.js';
import {picker} from './picker.js';
import {loadOf, Panel, partsOf, ratesOf, sideOf} from './results.js';
import {optionsOf, scenarioOf, SCENARIOS, settingsOf} from './scenarios.js';
import {clearProblems, field, settingsPanel, showProblem} from './settings.js';
import {fitsLink, fromHash, toHash} from './state.js';

const byId = (id) => document.getElementById(id);
const form = byId('form');
const theme = {light: 'light', dark: 'dark'};
const PAUSE_MS = 150;  // after a key, where an answer takes longer than that

/** What is asked. @type {import('./state.js').State} */
let state = fromHash(location.hash);
/** What the service knows. */
const known = {models: [], gpus: [], groups: new Map()};
/** @type {Map<string, Panel>} */
const panels = new Map();
let running = new AbortController();
let timer = 0;
/** Messages of the browser on what was typed, by option: nothing is asked meanwhile. */
const invalid = new Map();

const say = (text) => { byId('status').textContent = text; };

// ---- What is asked -------------------------------------------------------------------------------

/** The options of the question of a scenario. */
async function optionsFor(scenario) {
  if (!known.groups.has(scenario.question)) known.groups.set(scenario.question, list(`options/${scenario.question}`));
  const {groups} = await known.groups.get(scenario.question);
  return optionsOf(scenario, groups);
}

/** Takes a change, and asks. @param {Partial<State>} change */
function change(part, {rebuild = false} = {}) {
  state = {...state, ...part};
  if (!state.gpus.includes(state.focus)) state.focus = state.gpus[0] ?? '';
  if (rebuild) buildForm();
  askSoon();
}

function setOption(name, value, message) {
  const options = {...state.options, [name]: value};
  if (value === '') delete options[name];
  if (message) invalid.set(name, message);
  else invalid.delete(name);
  change({options});
}

/** The radio buttons stay, so that the one that was chosen keeps the focus. */
function scenarioField() {
  const box = byId('scenarios');
  for (const input of box.querySelectorAll('input')) input.checked = input.value === state.scenario;
  if (box.firstChild) return;
  box.replaceChildren(...SCENARIOS.map((scenario) => el('label', null,
      el('input', {type: 'radio', name: 'scenario', value: scenario.id, checked: scenario.id === state.scenario,
        onchange: () => change({scenario: scenario.id}, {rebuild: true})}),
      el('span', null, scenario.title))));
}

function modelEntries() {
  return known.models.map((model) => ({
    value: model.name, label: model.name, detail: `${model.family}, ${formatSi(model.parameters, '')} parameters`,
    words: `${model.name} ${model.family} ${model.note ?? ''}`.toLowerCase(),
  }));
}

async function takeFile(file) {
  try {
    change({content: await modelText(file), model: file.name}, {rebuild: true});
  } catch (error) {
    showProblem(form, 'model', error.message);
  }
}

function modelField() {
  const {element, input} = picker({
    label: 'Model', hint: 'Type to find one', entries: modelEntries(), keep: true,
    onpick: (entry) => change({model: entry.value, content: ''}, {rebuild: Boolean(state.content)}),
    onother: (text) => change({model: text, content: ''}, {rebuild: Boolean(state.content)}),
  });
  input.value = state.model;
  const file = el('input', {type: 'file', hidden: true, 'aria-hidden': 'true', tabindex: '-1',
    onchange: () => { if (file.files[0]) takeFile(file.files[0]); }});
  const hint = state.content ? 'The content of a file of yours' : 'or drop one anywhere';
  byId('model-field').replaceChildren(el('div', {'data-option': 'model'}, element,
      el('p', {class: 'field-problem', 'data-problem': 'model'}),
      el('p', {class: 'beside'}, el('button', {type: 'button', onclick: () => file.click()}, 'Open a config.json'), hint), file));
}

function gpuEntries() {
  return known.gpus.map((gpu) => ({
    value: gpu.aliases[0] ?? gpu.id, label: gpu.name,
    detail: `${formatBytes(gpu.memory_bytes)}, ${formatSi(gpu.memory_bytes_per_s, 'B/s')}`,
    words: [gpu.name, gpu.id, gpu.architecture, ...gpu.aliases].join(' ').toLowerCase(),
  }));
}

function gpuField() {
  const {element, input} = picker({
    label: state.scenario === 'share' ? 'GPU: the first of these' : 'GPUs', hint: 'Add a GPU', entries: gpuEntries(),
    onpick: (entry) => addGpu(entry.value), onother: addGpu,
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Backspace' && input.value === '') removeGpu(state.gpus.at(-1));
  });
  const chips = state.gpus.map((gpu) => el('li', null, gpu,
      el('button', {type: 'button', 'aria-label': `Remove ${gpu}`, onclick: () => removeGpu(gpu)}, '×')));
  byId('gpu-field').replaceChildren(el('div', {'data-option': 'gpus'}, element,
      el('ul', {class: 'chips', 'aria-label': 'Chosen GPUs'}, chips), el('p', {class: 'field-problem', 'data-problem': 'gpus'})));
}

function addGpu(gpu) {
  change({gpus: [...new Set([...state.gpus, gpu])]});
  gpuField();
  byId('gpu-field').querySelector('input').focus();
}

function removeGpu(gpu) {
  change({gpus: state.gpus.filter((other) => other !== gpu)});
  gpuField();
  byId('gpu-field').querySelector('input').focus();
}

function jobField() {
  const box = byId('job-field');
  box.hidden = state.scenario !== 'share';
  if (box.hidden) return;
  const set = (i, text) => change({jobs: state.jobs.with(i, text)});
  const names = el('datalist', {id: 'job-models'}, known.models.map((model) => el('option', {value: model.name})));
  const rows = state.jobs.map((job, i) => el('div', {class: 'row'},
      el('input', {type: 'text', value: job, list: 'job-models', spellcheck: 'false', 'aria-label': `Job ${i + 1}`,
        oninput: (event) => set(i, event.target.value)}),
      el('button', {type: 'button', 'aria-label': `Remove job ${i + 1}`,
        onclick: () => change({jobs: state.jobs.toSpliced(i, 1)}, {rebuild: true})}, '×')));
  box.replaceChildren(el('div', {'data-option': 'job'}, el('span', {class: 'group-label'}, 'Jobs'), rows, names,
      el('button', {type: 'button', onclick: () => change({jobs: [...state.jobs, 'gpt2']}, {rebuild: true})}, 'Add a job'),
      el('p', {class: 'help'}, 'A model and its options: gpt2 mode=training batch=4'),
      el('p', {class: 'field-problem', 'data-problem': 'job'})));
}

function rateField() {
  const box = byId('rate-field');
  box.hidden = state.scenario !== 'server';
  if (box.hidden) return;
  const input = el('input', {id: 'rates', type: 'text', value: state.rates, inputmode: 'decimal',
    'aria-describedby': 'rates-help', oninput: () => change({rates: input.value})});
  box.replaceChildren(el('div', {'data-option': 'rate'}, el('label', {for: 'rates'}, 'Requests per second to try'), input,
      el('p', {id: 'rates-help', class: 'help'}, 'A list: 1,2,4,8. The service simulates each load on each GPU.'),
      el('p', {class: 'field-problem', 'data-problem': 'rate'})));
}

async function buildForm() {
  const asked = state.scenario;
  scenarioField();
  modelField();
  byId('model-field').hidden = asked === 'share';
  gpuField();
  jobField();
  rateField();
  const scenario = scenarioOf(asked);
  const options = await optionsFor(scenario);
  if (asked !== state.scenario) return;  // another one was chosen meanwhile
  const value = (option) => state.options[option.name] ?? '';
  byId('settings').replaceChildren(settingsPanel(options,
      (option) => field(option, value(option), scenario.usual[option.name], setOption),
      (option) => value(option) !== '' || scenario.usual[option.name] !== undefined));
}

// ---- Answers -------------------------------------------------------------------------------------

/** Asks once what is being typed is there. What takes long waits for its button. */
function askSoon() {
  clearTimeout(timer);
  running.abort();
  keepAddress();
  const scenario = scenarioOf(state.scenario);
  if (scenario.slow) return offerSearch();
  timer = setTimeout(answer, scenario.id === 'server' ? PAUSE_MS : 0);
}

let addressTimer = 0;
/** A browser takes few changes of the address a second. */
function keepAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => history.replaceState(null, '', `#${toHash(state)}`), 100);
}

function offerSearch() {
  for (const panel of panels.values()) panel.outdate();
  const go = el('button', {type: 'button', class: 'main', onclick: answer}, 'Find the best');
  byId('problem').replaceChildren();
  byId('status').replaceChildren(go, ' A search takes some seconds.');
}

/** While a search runs. The service finishes it; its answer is dropped. */
function offerEnd() {
  const end = el('button', {type: 'button', onclick: () => { running.abort(); offerSearch(); }}, 'Stop waiting');
  byId('status').replaceChildren('Searching: some seconds, for large plans a minute. ', end);
}

function selector(label, values, chosen, onchange) {
  const select = el('select', {onchange: () => onchange(select.value)},
      values.map((value) => el('option', {value, selected: value === chosen}, value)));
  return el('label', null, label, select);
}

/** What is chosen for the panel of details. */
function detailChoices(body) {
  const choices = [];
  if (state.gpus.length > 1) choices.push(selector('on', state.gpus, state.focus, (focus) => change({focus})));
  if (state.scenario === 'server') choices.push(selector('requests/s', ratesOf(state), loadOf(state), (load) => change({load})));
  choices.push(el('button', {type: 'button', onclick: () => change({pinned: JSON.stringify(sideOf(body))})}, 'Compare changes with this'));
  return choices;
}

function withChoices(part) {
  if (part.id === 'detail') part.above = detailChoices(part.body);
  if (part.id === 'pinned') part.above = [el('button', {type: 'button', onclick: () => change({pinned: ''})}, 'Close')];
  if (part.id === 'share' && state.gpus.length > 1) part.above = [selector('on', state.gpus, state.focus, (focus) => change({focus}))];
  return part;
}

/** The panels of these parts, in their order; others go. */
function layOut(parts) {
  const ids = parts.map((part) => part.id);
  for (const [id, panel] of panels) {
    if (ids.includes(id)) continue;
    panel.element.remove();
    panels.delete(id);
  }
  for (const id of ids) {
    if (!panels.has(id)) panels.set(id, new Panel(id, say));
    byId('panels').append(panels.get(id).element);
  }
}

function sameOrder(parts) {
  const shown = [...byId('panels').children].map((panel) => panel.dataset.panel);
  return shown.join() === parts.map((part) => part.id).join();
}

/** Asks all that the state asks for, and shows each answer when it comes. */
async function answer() {
  running.abort();
  running = new AbortController();
  const {signal} = running;
  const asked = state;
  const start = performance.now();
  clearProblems(form);
  for (const [name, message] of invalid) showProblem(form, name, message);
  if (invalid.size > 0) return;
  try {
    const scenario = scenarioOf(asked.scenario);
    const parts = partsOf(asked, settingsOf(asked, scenario, await optionsFor(scenario))).map(withChoices);
    if (signal.aborted) return;
    if (!sameOrder(parts)) layOut(parts);
    if (scenario.slow) offerEnd();
    const shows = await Promise.allSettled(parts.map((part) => panels.get(part.id).show(part, asked, signal)));
    if (signal.aborted) return;
    parts.forEach((part, i) => { if (shows[i].status === 'rejected') panels.get(part.id).outdate(); });
    const failed = shows.find((show) => show.status === 'rejected');
    if (failed) return fail(failed.reason);
    byId('problem').replaceChildren();
    shown(start);
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

/** Once the answers are drawn. `performance` has how long it took, for tests and the curious. */
function shown(start) {
  requestAnimationFrame(() => {
    performance.measure('tilecast-answer', {start, end: performance.now()});
    const [last] = performance.getEntriesByName('tilecast-answer').slice(-1);
    say(`Answered in ${Math.round(last.duration)} ms` + (fitsLink(state) ? '' : '. The file is too long for a link.'));
  });
}

/** The field that a problem is about; '': none is known. */
function fieldOf(problem) {
  const named = problem.options.find((name) => form.querySelector(`[data-problem="${CSS.escape(name)}"]`));
  if (named) return named;
  if (problem.options.includes('gpu') || /unknown GPU/.test(problem.message)) return 'gpus';
  return problem.status === 404 || state.content ? 'model' : '';
}

function fail(error) {
  say('');
  if (error.status === 401) return askToken();
  if (!(error instanceof Problem)) console.error(error);
  const place = error instanceof Problem ? fieldOf(error) : '';
  const atField = place !== '' && showProblem(form, place, error.message);
  byId('problem').replaceChildren(el('p', null, atField ? `${place}: ${error.message}` : error.message));
}

/** A service that other machines reach asks each request for a token. */
function askToken() {
  const input = el('input', {type: 'password', 'aria-label': 'Token', autocomplete: 'off'});
  const use = () => { keepToken(input.value); begin(); };
  input.addEventListener('keydown', (event) => { if (event.key === 'Enter') use(); });
  byId('problem').replaceChildren(el('p', null, 'This service asks for its token. '), input, ' ',
      el('button', {type: 'button', onclick: use}, 'Use'));
}

// ---- Around them ---------------------------------------------------------------------------------

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === theme.dark : matchMedia('(prefers-color-scheme: dark)').matches;
}

function showTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  byId('theme').setAttribute('aria-pressed', String(isDark()));
}

function switchTheme() {
  const chosen = isDark() ? theme.light : theme.dark;
  localStorage.setItem('tilecast-theme', chosen);
  showTheme(chosen);
}

async function copyLink() {
  history.replaceState(null, '', `#${toHash(state)}`);
  await copyText(location.href);
  say(fitsLink(state) ? 'The link is copied: it opens this view.' : 'The link is copied without the file, which is too long for one.');
}

function takeDrops() {
  const mark = (on) => document.body.classList.toggle('dropping', on);
  addEventListener('dragover', (event) => { event.preventDefault(); mark(true); });
  addEventListener('dragleave', () => mark(false));
  addEventListener('drop', (event) => {
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files[0]) takeFile(event.dataTransfer.files[0]);
  });
}

async function begin() {
  byId('problem').replaceChildren();
  const first = answer();
  try {
    [known.models, known.gpus] = await Promise.all([list('models'), list('gpus')]);
    await buildForm();
  } catch (error) {
    fail(error);
  }
  await first;
}

form.addEventListener('submit', (event) => event.preventDefault());
byId('theme').addEventListener('click', switchTheme);
byId('copy-link').addEventListener('click', () => copyLink().catch((error) => say(error.message)));
addEventListener('hashchange', () => {
  state = fromHash(location.hash);
  buildForm();
  askSoon();
});
showTheme(localStorage.getItem('tilecast-theme'));
takeDrops();
begin();
