// From the JSON answer of any question to a page. Values come from the JSON as they are; this file
// only chooses, orders and names them.

import {el} from './dom.js';
import {format} from './format.js';

/** The page of an answer. @param {object} answer  of `--format json` */
export function view(answer) {
  return el('article', {class: 'answer'}, el('pre', null, JSON.stringify(answer, null, 1)));
}
