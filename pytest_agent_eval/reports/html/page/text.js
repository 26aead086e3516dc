// Elements and text. Whatever an agent, a judge or a case said gets into the page through said(),
// as text; nothing in these scripts parses markup.

const SPECIAL = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f' + // C0 but tab and newline, DEL, C1
  '\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2060\\ufeff' + // invisible
  '\\u2028-\\u202e\\u2066-\\u2069\\ufffe\\uffff]' + // line separators, marks that reorder
  '|\\udb40[\\udc00-\\udc7f]' + // tags
  '|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', // halves
  'g'
);

function symbol(found) {
  const code = found.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  const hex = code.toString(16);
  return code < 0x100 ? '\\x' + hex.padStart(2, '0') : code > 0xffff ? '\\U' + hex.padStart(8, '0') : '\\u' + hex.padStart(4, '0');
}

/** Foreign text as a string: for attributes and titles. */
function plain(text) {
  return String(text).replace(/\r\n/g, '\n').replace(SPECIAL, symbol);
}

/** Foreign text as nodes: what is invisible or reorders a line is a symbol that stands out. */
function nodes(text) {
  text = String(text).replace(/\r\n/g, '\n');
  SPECIAL.lastIndex = 0;
  if (!SPECIAL.test(text)) return [text];
  const found = [];
  let start = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (match.index > start) found.push(text.slice(start, match.index));
    found.push(el('span', { class: 'control' }, symbol(match[0])));
    start = match.index + match[0].length;
    if (found.length > 20000) break; // a binary file that passed for text
  }
  found.push(plain(text.slice(start)));
  return found;
}

/** Foreign text in an element that keeps its direction to itself. */
function said(text, tag = 'bdi', attributes = {}) {
  return el(tag, attributes, ...nodes(text));
}

/** A name that may break after each _ . - / and not only where there are blanks. */
function name(text, attributes = {}) {
  const parts = plain(text).split(/(?<=[_./-])/);
  return el('bdi', attributes, ...parts.flatMap((part, n) => (n ? [el('wbr'), part] : [part])));
}

function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
  return element;
}

function button(label, press, attributes = {}) {
  return el('button', { type: 'button', onclick: press, ...attributes }, label);
}

const plural = (n, noun) => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
const money = (usd) => '$' + (usd >= 0.1 || usd === 0 ? usd.toFixed(2) : usd.toFixed(4));
const percent = (share) => (100 * share).toFixed(0) + ' %';

function seconds(s) {
  if (s < 10) return s.toFixed(1) + ' s';
  const whole = Math.round(s);
  if (whole < 60) return whole + ' s';
  if (whole < 3600) return Math.floor(whole / 60) + ' min ' + String(whole % 60).padStart(2, '0') + ' s';
  return Math.floor(whole / 3600) + ' h ' + String(Math.floor((whole % 3600) / 60)).padStart(2, '0') + ' min';
}

/** A UTC time as people read it; any other text as it is. */
function moment(text) {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$/.exec(text);
  return found ? `${found[1]} ${found[2]} UTC` : text;
}

function bytes(n) {
  if (n < 1024) return n + ' B';
  if (n < 1024 * 1024) return (n / 1024).toFixed(1) + ' KiB';
  return (n / 1024 / 1024).toFixed(1) + ' MiB';
}

function number(value) {
  if (value === null || value === undefined) return '';
  return Number.isInteger(value) ? String(value) : Number(value.toPrecision(4)).toString();
}

/** A link to a file beside the report. Each part of the path is escaped: it can lead nowhere else. */
function fileLink(path) {
  const parts = path.split('/').map((part) => encodeURIComponent(part.toWellFormed ? part.toWellFormed() : part));
  const address = path.startsWith('/') ? 'file://' + parts.join('/') : './' + parts.join('/');
  return el('a', { href: address, class: 'path' }, ...nodes(path));
}

/** A text of the data, which may be one that was cut: {text, cut, see, end}. */
const whole = (text) => (typeof text === 'object' ? text.text : text ?? '');
const isCut = (text) => typeof text === 'object' && text !== null;

function cutMark(text) {
  return el('p', { class: 'cut' }, `cut: ${text.cut.toLocaleString('en')} bytes`, text.see ? ', see ' : '', text.see ? fileLink(text.see) : '');
}

/** A text as it is, with a mark where it was cut. */
function block(text, shown = whole(text)) {
  const mark = isCut(text) ? cutMark(text) : null;
  const pre = said(shown, 'pre', { tabindex: 0 });
  return isCut(text) && text.end ? el('div', {}, mark, pre) : el('div', {}, pre, mark);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;
const DEEPEST = 60;

/**
 * JSON with line breaks, or null for what is no JSON. Numbers and texts stay as they are written:
 * a number may be larger than this language can hold. `ordered`: keys in alphabetical order.
 */
function prettyJson(text, ordered = false) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(TOKEN);
  let at = 0;
  const value = (depth) => {
    const token = tokens[at];
    at += 1;
    if (token !== '{' && token !== '[') return token;
    if (depth > DEEPEST) throw new RangeError('too deep');
    const close = token === '{' ? '}' : ']';
    const items = [];
    while (tokens[at] !== close) {
      if (tokens[at] === ',') at += 1;
      const key = token === '{' ? tokens[at] + ': ' : '';
      if (key) at += 2;
      items.push(key + value(depth + 1));
    }
    at += 1;
    if (!items.length) return token + close;
    if (ordered && token === '{') items.sort();
    const line = '\n' + '  '.repeat(depth);
    return token + items.map((item) => `${line}  ${item}`).join(',') + line + close;
  };
  try {
    return value(0);
  } catch {
    return null;
  }
}

/** JSON with line breaks; any other text as it is. */
const indented = (text) => prettyJson(text) ?? text;
