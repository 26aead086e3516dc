// The table of cases and judges. Only the rows in view are elements; thousands of cases stay fluid.

const ROW = 36;
const SPARE = 8;
const CELLS = { p: ['\u2713', 'passed'], f: ['\u2717', 'failed'], s: ['\u2013', 'skipped'], e: ['!', 'error'], r: ['', 'recorded'] };
const grid = { element: null, rows: new Map(), cases: [], current: -1, top: 0, columns: [], filters: null };

function casesView(state) {
  grid.cases = matching(state);
  grid.columns = columnsOf(state);
  grid.rows = new Map();
  const head = el('div', { class: 'row head', role: 'row', 'aria-rowindex': 1 }, ...grid.columns.map((column) => heading(column, state)));
  const body = el('div', { class: 'body', role: 'rowgroup' });
  body.style.height = `${grid.cases.length * ROW}px`;
  const element = el('div', {
    class: 'grid', id: 'grid', role: 'grid', tabindex: 0, 'aria-label': 'Cases', 'aria-rowcount': grid.cases.length + 1, 'aria-colcount': grid.columns.length,
    onscroll: () => drawRows(), onfocus: () => mark(grid.current < 0 ? 0 : grid.current, false),
  }, el('div', { role: 'rowgroup', class: 'top' }, head), body);
  element.style.setProperty('--columns', widths(grid.columns).columns);
  element.style.setProperty('--all', widths(grid.columns).all);
  grid.element = element;
  grid.body = body;
  grid.filters = filterBar(state, grid.cases.length);
  if (state.q) searchable(() => refresh());
  const empty = grid.cases.length === 0 && el('p', { class: 'empty' }, CASES.length ? 'No case fits these filters.' : 'This run has no case to show.');
  return el('div', { class: 'cases' }, grid.filters, element, empty);
}

/** After the view is in the page: where it was scrolled to, and which row was current. */
function settle(restored) {
  if (restored) {
    grid.element.scrollTop = grid.top;
    const place = grid.cases.findIndex((one) => one.i === grid.kept);
    grid.current = place;
  } else {
    grid.current = -1;
    grid.top = 0;
  }
  drawRows();
  if (grid.current >= 0) mark(grid.current);
}

function columnsOf(state) {
  const columns = [
    { key: 'status', title: 'status', width: 7.4 },
    { key: 'case', title: 'case', width: 13.6 },
  ];
  if (SUITES.length > 1 && state.suite === '') columns.push({ key: 'suite', title: 'suite', width: 8 });
  columns.push({ key: 'split', title: 'split', width: 4.6 });
  for (const judge of judgesShown(state)) columns.push({ key: 'judge:' + judge, title: judge, judge, width: 4.7, digits: digitsOf(judge) });
  if (CASES.some((one) => one.k)) columns.push({ key: 'trials', title: 'trials', width: 4.2, numeric: true });
  columns.push({ key: 'cost', title: 'cost', width: 5.4, numeric: true }, { key: 'time', title: 'time', width: 6.2, numeric: true });
  return columns;
}

/** Decimals of a judge's numbers, the same in the whole column. */
function digitsOf(judge) {
  let most = 0;
  for (const one of CASES) {
    const cell = one.v[placeOf(one, judge)];
    const value = cell && cell[1];
    if (typeof value === 'number' && !Number.isInteger(value)) {
      most = Math.max(most, (String(value).split('.')[1] ?? '').length);
      if (most >= 2) return 2;
    }
  }
  return most;
}

/** Where the columns are: all rows are as wide as the table, the column of names takes what is left. */
function widths(columns) {
  return {
    columns: columns.map((column) => (column.key === 'case' ? `minmax(${column.width}rem, 1fr)` : `${column.width}rem`)).join(' '),
    all: columns.reduce((sum, column) => sum + column.width, 0) + 'rem',
  };
}

function heading(column, state) {
  const down = state.sort === '-' + column.key;
  const up = state.sort === column.key;
  const next = up ? '-' + column.key : down ? '' : column.key;
  return el('div', { role: 'columnheader', class: column.numeric ? 'numeric' : column.judge ? 'judge' : '', 'aria-sort': up ? 'ascending' : down ? 'descending' : 'none' },
    el('button', { type: 'button', title: plain(column.title), onclick: () => go({ sort: next }) }, column.judge ? name(column.title) : column.title, el('span', { class: 'arrow', 'aria-hidden': 'true' }, up ? ' \u2191' : down ? ' \u2193' : '')));
}

/** Make the elements of the rows in view, and drop those of the others. */
function drawRows() {
  const { element, body, rows, cases } = grid;
  if (!element?.isConnected) return;
  grid.top = element.scrollTop;
  const first = Math.max(0, Math.floor(element.scrollTop / ROW) - SPARE);
  const last = Math.min(cases.length, Math.ceil((element.scrollTop + element.clientHeight) / ROW) + SPARE);
  for (const [place, row] of rows) {
    if (place < first || place >= last) {
      row.remove();
      rows.delete(place);
    }
  }
  const added = [];
  for (let place = first; place < last; place += 1) {
    if (rows.has(place)) continue;
    const row = rowOf(cases[place], place);
    rows.set(place, row);
    added.push(row);
  }
  body.append(...added);
}

function rowOf(one, place) {
  const row = el('div', { class: 'row' + (place === grid.current ? ' current' : ''), role: 'row', id: 'row-' + place, 'aria-rowindex': place + 2, 'aria-selected': String(place === grid.current) });
  row.style.transform = `translateY(${place * ROW}px)`;
  row.addEventListener('click', (event) => {
    if (!event.target.closest('a')) open(place);
  });
  for (const column of grid.columns) row.append(cellOf(one, column));
  return row;
}

function cellOf(one, column) {
  const cell = (content, kind = '', title = null) => el('div', { role: 'gridcell', class: kind, title }, content);
  if (column.judge) {
    const place = placeOf(one, column.judge);
    return judgeCell(place === undefined ? 0 : one.v[place], place === undefined ? null : changed(one, place), column.digits, cell);
  }
  switch (column.key) {
    case 'status': return cell(el('span', { class: `status ${one.st}` }, one.st));
    case 'case': return cell(el('a', { href: caseAddress(one), tabindex: -1 }, ...nodes(one.n)), 'name', plain(one.n));
    case 'suite': return cell(said(SUITES[one.s].title), 'quiet');
    case 'split': return cell(one.h, 'quiet');
    case 'trials': return cell(String(one.k ?? 1), 'numeric');
    case 'cost': return cell(one.usd === undefined ? '' : money(one.usd), 'numeric');
    default: return cell(one.sec === undefined ? '' : seconds(one.sec), 'numeric');
  }
}

function judgeCell(found, change, digits, cell) {
  if (!found) return cell('', 'verdict');
  const [sign, state] = CELLS[found[0]];
  const value = found[1];
  let text = sign;
  if (found.length > 2) text = `${found[2]}/${found[3]}`;
  else if (typeof value === 'number') text = Math.abs(value) < 1e6 ? value.toFixed(digits) : number(value);
  const mark = change ? el('span', { class: change > 0 ? 'up' : 'down' }, change > 0 ? '\u25b2' : '\u25bc') : null;
  const words = state + (change ? (change > 0 ? ', better than the baseline' : ', worse than the baseline') : '');
  return cell([el('span', { 'aria-label': `${text} ${words}` }, text), mark], `verdict ${state}`, words);
}

/** Make a row the current one. */
function mark(place, scroll = true) {
  if (!grid.cases.length) return;
  place = Math.min(Math.max(place, 0), grid.cases.length - 1);
  const before = grid.rows.get(grid.current);
  before?.classList.remove('current');
  before?.setAttribute('aria-selected', 'false');
  grid.current = place;
  if (scroll) {
    const { element } = grid;
    const head = element.firstElementChild.offsetHeight;
    const room = element.clientHeight - head;
    if (place * ROW < element.scrollTop) element.scrollTop = place * ROW;
    else if ((place + 1) * ROW > element.scrollTop + room) element.scrollTop = (place + 1) * ROW - room;
  }
  drawRows();
  const row = grid.rows.get(place);
  row?.classList.add('current');
  row?.setAttribute('aria-selected', 'true');
  grid.element.setAttribute('aria-activedescendant', 'row-' + place);
}

function open(place) {
  const one = grid.cases[place];
  if (one) location.hash = caseAddress(one);
}

/** Keys in the table. */
function gridKey(event) {
  const page = Math.max(1, Math.floor(grid.element.clientHeight / ROW) - 2);
  const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in steps) {
    const step = steps[event.key];
    mark(step === -Infinity ? 0 : step === Infinity ? grid.cases.length - 1 : grid.current < 0 ? 0 : grid.current + step);
    grid.element.focus({ preventScroll: true });
    return true;
  }
  if (event.key === 'Enter' && !event.target.closest('button, select, a, summary')) {
    open(Math.max(grid.current, 0));
    return true;
  }
  return false;
}
