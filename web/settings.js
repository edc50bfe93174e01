// Fields for the options of a question, made of the service's own table of options.

import {el, freshId} from './dom.js';

/** The first sentence of a help text. */
function brief(help) {
  return help.split('; ')[0];
}

/** "from 1 to 8" where the service states a range that says something. */
function rangeOf(option) {
  const SAYS_NOTHING = 10_000;
  return option.max !== undefined && option.max < SAYS_NOTHING ? ` (${option.min} to ${option.max})` : '';
}

function choice(option, value, id) {
  const usual = option.default ? `${option.default} (default)` : 'default';
  const others = option.choices.filter((word) => word !== option.default);
  return el('select', {id}, el('option', {value: '', selected: value === '' || value === option.default}, usual),
      others.map((word) => el('option', {value: word, selected: word === value}, word)));
}

function entry(option, value, usual, id) {
  if (option.type === 'boolean') return el('input', {id, type: 'checkbox', checked: value === 'on'});
  if (option.choices && !option.list) return choice(option, value, id);
  const isWhole = option.type === 'integer' && !option.list;
  return el('input', {
    id, type: isWhole ? 'number' : 'text', min: isWhole ? option.min : null, step: isWhole ? 1 : null,
    inputmode: option.type === 'integer' || option.type === 'number' ? 'decimal' : null,
    value, placeholder: usual || option.default || 'default', spellcheck: 'false', autocomplete: 'off',
  });
}

/** "step overhead (us)" of step_overhead_us. */
function titleOf(name) {
  return name.replace(/_(s|us|mb)$/, ' ($1)').replaceAll('_', ' ');
}

/**
 * One field with its help. `data-option` names it, so that a problem can be shown beside it.
 * @param {object} option of GET /v1/options/QUESTION
 * @param {string} value as typed; '': none
 * @param {string} usual the value that holds where none is given
 * @param {(name: string, value: string, message: string) => void} onchange
 */
export function field(option, value, usual, onchange) {
  const id = freshId('set');
  const control = entry(option, value, usual, id);
  const read = () => (option.type === 'boolean' ? (control.checked ? 'on' : '') : control.value);
  const invalid = () => (control.validity.badInput ? control.validationMessage : '');
  control.addEventListener('input', () => onchange(option.name, read(), invalid()));
  control.setAttribute('aria-describedby', `${id}-help ${id}-problem`);
  return el('div', {class: `field ${option.type}`, 'data-option': option.name},
      el('label', {for: id}, titleOf(option.name)), control,
      el('p', {id: `${id}-help`, class: 'help', title: option.help}, brief(option.help) + rangeOf(option)),
      el('p', {id: `${id}-problem`, class: 'field-problem', 'data-problem': option.name}));
}

/**
 * The settings of a scenario: the essential ones, and all others behind a button. Where the columns
 * are below each other (page.css), they would hide the results: they are closed there.
 * @param {object[]} options
 * @param {(option: object) => HTMLElement} make the field of an option
 * @param {(option: object) => boolean} isSet whether it was changed: shown though it is not essential
 */
export function settingsPanel(options, make, isSet) {
  const first = options.filter((option) => option.essential || isSet(option));
  const rest = options.filter((option) => !first.includes(option));
  const fields = rest.map((option) => ({option, node: make(option)}));
  const filter = el('input', {type: 'search', placeholder: 'Find a setting', 'aria-label': 'Find a setting', oninput: () => {
    const text = filter.value.toLowerCase();
    for (const {option, node} of fields) {
      node.hidden = !`${option.name} ${titleOf(option.name)} ${option.help}`.toLowerCase().includes(text);
    }
  }});
  return el('details', {class: 'settings', open: matchMedia('(min-width: 901px)').matches}, el('summary', null, 'Settings'),
      el('div', {class: 'fields'}, first.map(make)),
      rest.length > 0 && el('details', {class: 'more'}, el('summary', null, `${rest.length} more settings`), filter,
          el('div', {class: 'fields'}, fields.map(({node}) => node))));
}

/** Shows a message at the field of an option, or takes it away. Returns whether there is such a field. */
export function showProblem(form, name, message) {
  const line = form.querySelector(`[data-problem="${CSS.escape(name)}"]`);
  if (!line) return false;
  line.textContent = message;
  const field = line.closest('[data-option]');
  field.classList.toggle('wrong', message !== '');
  field.querySelector('input, select')?.setAttribute('aria-invalid', String(message !== ''));
  const more = line.closest('details');
  if (more && message) more.open = true;
  return true;
}

/** Takes the messages of all fields away. */
export function clearProblems(form) {
  for (const line of form.querySelectorAll('[data-problem]')) {
    if (line.textContent) showProblem(form, line.dataset.problem, '');
  }
}
