// The report: reads the answer that lies in the page and shows it.

import {el} from './dom.js';
import {format} from './format.js';
import {view} from './views.js';

/**
 * @param {{answer: object, command?: string, version: string, left_out: {list: string, count: number}[]}} report
 *   `left_out`: entries of lists that the page has no room for
 */
function showReport(report) {
  const article = view(report.answer, {command: report.command});
  const title = article.querySelector('h1')?.textContent;
  if (title) document.title = `${title} · Tilecast`;
  const left = (report.left_out ?? []).map((l) => `${format(l.count)} of ${l.list}`);
  const main = el('main', {class: 'report'}, article, el('footer', null,
      left.length > 0 ? el('p', null, `Left out, to keep the file small: ${left.join(', ')}. --format json has all of them.`) : null,
      el('p', null, `Forecast by Tilecast ${report.version}: computed, not measured. Whiskers and bands are 80 % intervals.`)));
  document.body.replaceChildren(main);
}

showReport(JSON.parse(document.getElementById('report').textContent));
