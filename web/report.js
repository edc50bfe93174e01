// The report: reads the answer that lies in the page and shows it.

import {el} from './dom.js';
import {format} from './format.js';
import {view} from './views.js';

/**
 * @typedef {object} Report  What src/report/html.cc puts into the page.
 * @property {object} answer
 * @property {string} [command]  the command line that was asked
 * @property {string} version
 * @property {{list: string, count: number}[]} left_out  entries of lists that had no room
 */

/** @param {Report} report */
function showReport(report) {
  const article = view(report.answer, {command: report.command});
  const title = article.querySelector('h1')?.textContent;
  if (title) document.title = `${title} · Tilecast`;
  document.body.replaceChildren(el('main', {class: 'report'}, article, footer(report)));
}

function footer(report) {
  const left = report.left_out.map(({list, count}) => `${format(count)} of ${list}`);
  return el('footer', null,
            left.length === 0 ? null : el(
                'p', null, `Left out, to keep the file small: ${left.join(', ')}. --format json ` +
                'has all of them.'),
            el('p', null, `Forecast by Tilecast ${report.version}: computed, not measured. ` +
               'Whiskers and bands are 80 % intervals.'));
}

showReport(JSON.parse(document.getElementById('report').textContent));
