// Which view is shown, and the keys that work everywhere.

const VIEWS = { overview: overviewView, cases: casesView, case: caseView };
const view = document.getElementById('view');
let shown = null;

function render() {
  const state = address();
  state.view = state.view in VIEWS ? state.view : state.q || state.status ? 'cases' : 'overview';
  const before = shown;
  shown = state;
  drawBar(state);
  if (before?.view === 'cases' && state.view === 'cases') {
    redrawCases(state, before);
    return;
  }
  document.body.dataset.view = state.view;
  view.replaceChildren(VIEWS[state.view](state));
  document.title = `${state.view === 'case' ? plain(state.case) + ' \u2013 ' : ''}${plain(DATA.verdict)} \u2013 agent evaluation`;
  if (state.view === 'cases') {
    settle(before?.view === 'case');
    grid.element.focus({ preventScroll: true });
  } else {
    if (before?.case !== state.case || before?.view !== state.view) scrollTo(0, 0);
    if (before) view.focus({ preventScroll: true });
  }
}

/**
 * The table again after a filter or the order changed. The search box stays the same element: who
 * types in it, perhaps with an input method, is not interrupted.
 */
function redrawCases(state, before) {
  const focused = document.activeElement?.id === 'search' ? null : pathTo(document.activeElement);
  const same = ['suite', 'q', 'status', 'split', 'tag', 'category', 'judge', 'sort'].every((key) => before[key] === state[key]);
  const left = grid.element.scrollLeft;
  grid.kept = grid.cases[grid.current]?.i;
  const next = casesView(state);
  const box = document.getElementById('search');
  if (box !== document.activeElement) box.value = wellFormed(state.q);
  view.querySelector('.empty')?.remove();
  for (const part of ['.chips', '.line2', '.grid']) view.querySelector(part).replaceWith(next.querySelector(part));
  view.firstElementChild.append(...next.querySelectorAll('.empty'));
  settle(same);
  grid.element.scrollLeft = left;
  if (focused) (view.querySelector(focused) ?? grid.element).focus({ preventScroll: true });
  document.getElementById('live').textContent = foundText(grid.cases.length, state);
}

/** Texts of more cases can be searched: show what they add, and leave everything else alone. */
function refresh() {
  const state = address();
  if (shown?.view === 'cases') redrawCases(state, state);
}

/** A selector of the control that has the focus, so that its successor gets it. */
function pathTo(element) {
  const parts = [];
  while (element && element !== view) {
    if (element === document.body) return null;
    parts.unshift(`:nth-child(${[...element.parentElement.children].indexOf(element) + 1})`);
    element = element.parentElement;
  }
  return parts.length ? '#view > ' + parts.join(' > ') : null;
}

// -- the bar ------------------------------------------------------------------------------------

function drawBar(state) {
  const tab = (label, target, on) => el('a', { href: target, class: on ? 'on' : '', 'aria-current': on ? 'page' : null }, label);
  const back = addressWith({ view: 'cases', case: '', trial: '' }, state);
  document.getElementById('bar').replaceChildren(
    el('span', { class: 'title' }, el('span', { class: `dot ${DATA.good ? 'passed' : 'failed'}` }), ' ', said(SUITES.map((suite) => suite.name).filter((text, n, all) => all.indexOf(text) === n).join(', ') || 'Agent evaluation')),
    el('nav', { 'aria-label': 'Views' }, tab('Overview', '#view=overview', state.view === 'overview'), tab(['Cases ', el('span', { class: 'n' }, CASES.length.toLocaleString('en'))], state.view === 'overview' ? '#view=cases' : back, state.view !== 'overview')),
    el('span', { class: 'room' }),
    button('?', help, { class: 'round', title: 'Keys', 'aria-label': 'Keys' }),
    button('\u25d0', () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark', true), { class: 'round', id: 'theme', title: 'Light or dark', 'aria-label': 'Light or dark' }));
}

const KEYS = [['/', 'search'], ['j  k  \u2193  \u2191', 'next, previous case'], ['Enter', 'open the case'], ['Esc', 'back to the table'], ['o', 'overview'], ['c', 'cases'], ['?', 'these keys']];

function help() {
  const dialog = el('dialog', { 'aria-label': 'Keys', onclose: () => dialog.remove() }, el('h2', {}, 'Keys'),
    el('dl', { class: 'facts' }, ...KEYS.flatMap(([key, what]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, what)])),
    button('Close', () => dialog.close()));
  document.body.append(dialog);
  dialog.showModal();
}

function theme(wanted, keep) {
  document.documentElement.dataset.theme = wanted;
  if (!keep) return;
  try {
    localStorage.setItem('agent-eval-theme', wanted);
  } catch {
    // Some browsers keep nothing for files.
  }
}

const dark = matchMedia('(prefers-color-scheme: dark)');

function storedTheme() {
  try {
    return localStorage.getItem('agent-eval-theme');
  } catch {
    return null;
  }
}

// -- keys ---------------------------------------------------------------------------------------

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog')) return;
  const typing = event.target.closest('input, select, textarea');
  if (event.key === 'Escape' && typing) {
    typing.blur();
    grid.element?.focus({ preventScroll: true });
    event.preventDefault();
    return;
  }
  if (typing && event.target.id === 'search' && (event.key === 'Enter' || event.key === 'ArrowDown')) {
    mark(0);
    grid.element.focus({ preventScroll: true });
    event.preventDefault();
    return;
  }
  if (typing) return;
  if (key(event)) event.preventDefault();
});

function key(event) {
  if (event.key === '?') help();
  else if (event.key === '/') {
    if (shown.view !== 'cases') location.hash = addressWith({ view: 'cases', case: '', trial: '' });
    requestAnimationFrame(() => setTimeout(() => document.getElementById('search')?.focus(), 30));
  } else if (event.key === 'o') location.hash = '#view=overview';
  else if (event.key === 'c' && shown.view !== 'cases') location.hash = addressWith({ view: 'cases', case: '', trial: '' }, shown.view === 'case' ? shown : address(''));
  else if (shown.view === 'cases') return gridKey(event);
  else if (shown.view === 'case') {
    const step = document.querySelector(`a[data-step="${['j', 'k', 'Escape'].includes(event.key) ? event.key : 'none'}"]`);
    if (!step) return false;
    location.hash = step.getAttribute('href');
  } else return false;
  return true;
}

theme(storedTheme() ?? (dark.matches ? 'dark' : 'light'), false);
dark.addEventListener('change', () => storedTheme() ?? theme(dark.matches ? 'dark' : 'light', false));
addEventListener('hashchange', render);
addEventListener('resize', () => drawRows());
render();
