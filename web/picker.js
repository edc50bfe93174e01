// A field that finds entries of a long list while one types: a combobox with a list below it.

import {el, freshId} from './dom.js';

/** @typedef {{value: string, label: string, detail: string, words: string}} Entry `words`: what is searched */

const MOST_SHOWN = 60;

/** The entries that have all words of a text; those whose label begins with it come first. */
export function matching(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter((entry) => words.every((word) => entry.words.includes(word)));
  const starts = (entry) => (words.length > 0 && entry.label.toLowerCase().startsWith(words[0]) ? 0 : 1);
  return found.sort((a, b) => starts(a) - starts(b)).slice(0, MOST_SHOWN);
}

/**
 * @param {{label: string, hint?: string, entries: Entry[], onpick: (entry: Entry) => void,
 *   onother?: (text: string) => void, keep?: boolean}} options `keep`: the field shows what was picked;
 *   `onother`: of a text that is no entry
 * @returns {{element: HTMLElement, input: HTMLInputElement}}
 */
export function picker({label, hint, entries, onpick, onother, keep = false}) {
  const id = freshId('pick');
  const listId = `${id}-list`;
  const input = el('input', {
    id, type: 'text', role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': listId,
    spellcheck: 'false', autocomplete: 'off', placeholder: hint,
  });
  const popup = el('ul', {id: listId, role: 'listbox', 'aria-label': label, hidden: true});
  let shown = [];
  let active = -1;
  let typed = false;

  function close() {
    popup.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
    active = -1;
  }

  function mark(next) {
    active = next;
    [...popup.children].forEach((item, i) => item.setAttribute('aria-selected', String(i === active)));
    const item = popup.children[active];
    if (!item) return;
    input.setAttribute('aria-activedescendant', item.id);
    item.scrollIntoView({block: 'nearest'});
  }

  function take(entry) {
    input.value = keep ? entry.label : '';
    typed = false;
    close();
    onpick(entry);
  }

  function open() {
    shown = matching(entries, typed ? input.value : '');
    popup.replaceChildren(...shown.map((entry, i) => el(
        'li', {id: `${listId}-${i}`, role: 'option', 'aria-selected': 'false',
          onmousedown: (event) => { event.preventDefault(); take(entry); }},
        el('span', null, entry.label), el('small', null, entry.detail))));
    popup.hidden = shown.length === 0;
    input.setAttribute('aria-expanded', String(!popup.hidden));
    active = -1;
    if (typed && shown.length > 0) mark(0);
  }

  /** A text that is the name of an entry is that entry, another one is the caller's. */
  function settle() {
    const text = input.value.trim();
    const wasTyped = typed;
    close();
    typed = false;
    if (!wasTyped || text === '') return;
    const same = entries.find((entry) => entry.value.toLowerCase() === text.toLowerCase());
    if (same) take(same);
    else onother?.(text);
  }

  const keys = {
    ArrowDown: () => (popup.hidden ? open() : mark(Math.min(active + 1, shown.length - 1))),
    ArrowUp: () => mark(Math.max(active - 1, 0)),
    Enter: () => (!popup.hidden && active >= 0 ? take(shown[active]) : settle()),
    Escape: close,
  };
  input.addEventListener('input', () => { typed = true; open(); });
  input.addEventListener('click', () => {
    if (!popup.hidden) return;
    if (keep && !typed) input.select();  // what one types replaces what was picked
    open();
  });
  input.addEventListener('focus', () => { if (keep) input.select(); });
  input.addEventListener('blur', settle);
  input.addEventListener('keydown', (event) => {
    const act = keys[event.key];
    if (!act) return;
    if (event.key !== 'Escape' || !popup.hidden) event.preventDefault();
    act();
  });
  const element = el('div', {class: 'picker'}, el('label', {for: id}, label), el('div', {class: 'combo'}, input, popup));
  return {element, input};
}
