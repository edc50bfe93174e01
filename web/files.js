// What leaves the page: copied texts, saved files. What comes in: files of models.

import {withoutWeights} from './onnx.js';

/** What makes a saved chart look as on the page, where no style sheet is. */
const DRAWN = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-family',
  'font-weight', 'text-anchor'];

/** Puts a text into the clipboard. Without a secure context only the old way is allowed. */
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('The browser does not allow to copy.');
}

/** Saves content as a file. */
export function saveFile(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], {type}));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** A name for a file: letters, digits, dots and hyphens. */
export function fileName(parts, ending) {
  const name = parts.filter(Boolean).join('-').replace(/[^A-Za-z0-9.-]+/g, '_').slice(0, 80);
  return `${name || 'tilecast'}.${ending}`;
}

/** The text of a chart as a file that looks the same alone. */
export function svgText(chart) {
  const copy = chart.cloneNode(true);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const from = [chart, ...chart.querySelectorAll('*')];
  const to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of DRAWN) to[i].setAttribute(name, style.getPropertyValue(name));
  });
  const page = getComputedStyle(document.body).backgroundColor;
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of [['width', '100%'], ['height', '100%'], ['fill', page]]) ground.setAttribute(name, value);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** The most that the text of a model may have: a body has at most 8 MiB. */
const MOST_LETTERS = 7 << 20;

const tooLarge = (file) => new Error(`${file.name} is too large: the service takes at most 7 MiB.`);

async function base64(bytes) {
  const address = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(new Blob([bytes]));
  });
  return address.slice(address.indexOf(',') + 1);
}

/**
 * The text of a model's file: of an ONNX file, an object that holds it without its weights. Throws
 * where it is none that the service takes.
 */
export async function modelText(file) {
  if (/\.onnx$/i.test(file.name)) {
    const encoded = JSON.stringify({base64: await base64(await withoutWeights(file)), name: file.name});
    if (encoded.length > MOST_LETTERS) throw tooLarge(file);
    return encoded;
  }
  if (file.size > MOST_LETTERS) throw tooLarge(file);
  const text = await file.text();
  if (text.includes('\0') || text.includes('\ufffd')) {
    throw new Error(`${file.name} is no text: the page takes a config.json, a graph (.tcg) or an ONNX file (.onnx). ` +
        'For GGUF files, use the command line.');
  }
  return text;
}
