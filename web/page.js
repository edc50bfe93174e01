// The page: what is asked on the left, the answers on the right. No number is computed here; what
// is shown are fields of answers.

import {keepToken, list, Problem} from './ask.js';
import {el} from './dom.js';
import {copyText} from './files.js';
import {buildForm, takeFile} from './form.js';
import {Panel} from './panel.js';
import {loadOf, partsOf, ratesOf, sideOf} from './results.js';
import {optionsOf, scenarioOf, settingsOf} from './scenarios.js';
import {clearProblems, showProblem} from './settings.js';
import {fitsLink, fromHash, toHash} from './state.js';
import {themeButton} from './theme.js';

const byId = (id) => document.getElementById(id);
const form = byId('form');
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
  const name = scenario.question;
  if (!known.groups.has(name)) known.groups.set(name, list(`options/${name}`));
  try {
    return optionsOf(scenario, (await known.groups.get(name)).groups);
  } catch (error) {
    known.groups.delete(name);  // the next one asks again
    throw error;
  }
}

/** Takes a change, and asks. @param {Partial<State>} change */
function change(part, {rebuild = false} = {}) {
  state = {...state, ...part};
  if (!state.gpus.includes(state.focus)) state.focus = state.gpus[0] ?? '';
  if (rebuild) {
    invalid.clear();
    buildForm(app).catch(fail);
  }
  askSoon();
}

function setOption(name, value, message) {
  const options = {...state.options, [name]: value};
  if (value === '') delete options[name];
  if (message) invalid.set(name, message);
  else invalid.delete(name);
  change({options});
}

/** What the fields read and change. @type {import('./form.js').App} */
const app = {get state() { return state; }, known, form, change, setOption, optionsFor};

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

/** While a search runs: how far it is, and a button that ends it. */
function offerEnd() {
  const end = el('button', {type: 'button', onclick: () => { running.abort(); offerSearch(); }}, 'Cancel');
  const progress = el('span', null, 'Searching: some seconds, for large plans a minute. ');
  byId('status').replaceChildren(progress, end);
  return (text) => { progress.textContent = `Searching: ${text}. `; };
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
    if (scenario.slow) {
      const show = offerEnd();
      for (const part of parts) part.slow = show;
    }
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
    if (event.dataTransfer.files[0]) takeFile(app, event.dataTransfer.files[0]);
  });
}

async function begin() {
  byId('problem').replaceChildren();
  const first = answer();
  try {
    [known.models, known.gpus] = await Promise.all([list('models'), list('gpus')]);
    await buildForm(app);
  } catch (error) {
    fail(error);
  }
  await first;
}

form.addEventListener('submit', (event) => event.preventDefault());
themeButton(byId('theme'));
byId('copy-link').addEventListener('click', () => copyLink().catch((error) => say(error.message)));
addEventListener('hashchange', () => {
  state = fromHash(location.hash);
  invalid.clear();
  buildForm(app).catch(fail);
  askSoon();
});
takeDrops();
begin();
