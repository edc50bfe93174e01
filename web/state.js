// What is asked, and its form in the address: a link opens the same view.

import {scenarioOf} from './scenarios.js';

/**
 * @typedef {object} State
 * @property {string} scenario id of a scenario
 * @property {string} model name of a bundled model, or of the file whose content is given
 * @property {string} content content of a model's file; '': the model is bundled
 * @property {string[]} gpus names of GPUs
 * @property {string} focus the GPU whose details are shown
 * @property {string} rates requests per second to try
 * @property {string} load the one of them whose details are shown
 * @property {string[]} jobs that share a GPU: 'MODEL option=value ...'
 * @property {string} pinned a request to compare with, as JSON; '': none
 * @property {Object<string, string>} options settings that were made, as typed
 */

/** @returns {State} */
export function firstState() {
  return {
    scenario: 'generation', model: 'llama-3.1-8b', content: '', gpus: ['H100', 'A100', 'L40S'],
    focus: 'H100', rates: '1,2,4,8', load: '', jobs: ['gpt2 mode=training batch=4', 'bert batch=8'], pinned: '',
    options: {},
  };
}

const TEXTS = ['scenario', 'model', 'content', 'focus', 'rates', 'load', 'pinned'];
/** Content that is longer makes no link that mail and chat carry whole. */
const LONGEST_CONTENT = 8000;

/** Whether a link can hold the state. */
export function fitsLink(state) {
  return state.content.length <= LONGEST_CONTENT;
}

/** The state as the part of an address after #; what is as at first is left out. */
export function toHash(state) {
  const usual = firstState();
  const words = new URLSearchParams();
  for (const key of TEXTS) {
    if (key === 'content' && !fitsLink(state)) continue;
    if (state[key] !== usual[key] || key === 'scenario' || key === 'model') words.set(key, state[key]);
  }
  words.set('gpus', state.gpus.join(','));
  if (state.scenario === 'share') state.jobs.forEach((job) => words.append('job', job));
  for (const [name, value] of Object.entries(state.options)) words.set(`o.${name}`, value);
  return words.toString().replaceAll('%2C', ',');
}

/** The state of an address; whatever it lacks is as at first. @returns {State} */
export function fromHash(hash) {
  const state = firstState();
  const words = new URLSearchParams(hash.replace(/^#/, ''));
  for (const key of TEXTS) state[key] = words.get(key) ?? state[key];
  state.scenario = scenarioOf(state.scenario).id;
  if (words.has('gpus')) state.gpus = [...new Set(words.get('gpus').split(','))].filter(Boolean);
  if (words.has('job')) state.jobs = words.getAll('job');
  for (const [name, value] of words) {
    if (name.startsWith('o.')) state.options[name.slice(2)] = value;
  }
  if (!state.gpus.includes(state.focus)) state.focus = state.gpus[0] ?? '';
  return state;
}
