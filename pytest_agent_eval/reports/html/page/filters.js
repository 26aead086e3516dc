// Which cases the table shows, in which order, and the controls that say so.

const OUTCOMES = ['failed', 'error', 'passed', 'recorded', 'skipped', 'regressed', 'improved'];

/** Names of the judges of the suites that a filter leaves, each once. */
function judgesShown(state) {
  const suites = state.suite === '' ? SUITES : SUITES.filter((_, n) => String(n) === state.suite);
  return [...new Set(suites.flatMap((suite) => suite.judges.map((judge) => judge.name)))];
}

const places = SUITES.map((suite) => new Map(suite.judges.map((judge, n) => [judge.name, n])));

/** Where a judge's cell is in a case of its suite; undefined where that suite has no such judge. */
const placeOf = (one, judge) => places[one.s].get(judge);

/** The cases that the filters leave, in the order asked for. */
function matching(state) {
  const tests = [];
  const statuses = state.status ? new Set(state.status.split(',')) : null;
  if (statuses) tests.push((one) => statuses.has(one.st));
  if (state.suite) tests.push((one) => String(one.s) === state.suite);
  if (state.split) tests.push((one) => one.h === state.split);
  if (state.category) tests.push((one) => one.c === state.category);
  if (state.tag) {
    const at = state.tag.indexOf('=');
    const [key, value] = [state.tag.slice(0, at), state.tag.slice(at + 1)];
    tests.push((one) => one.t?.[key] === value);
  }
  if (state.judge) tests.push(judgeTest(state.judge));
  const words = state.q.toLowerCase();
  if (words) tests.push((one) => one.n.toLowerCase().includes(words) || search.texts[one.i]?.includes(words));
  return sorted(CASES.filter((one) => tests.every((test) => test(one))), state.sort);
}

function judgeTest(filter) {
  const at = filter.lastIndexOf(':');
  const [judge, outcome] = [filter.slice(0, at), filter.slice(at + 1)];
  return (one) => {
    const place = placeOf(one, judge);
    if (place === undefined) return false;
    if (outcome === 'regressed' || outcome === 'improved') return changed(one, place) === (outcome === 'improved' ? 1 : -1);
    const cell = one.v[place];
    return Boolean(cell) && STATES[cell[0]] === outcome;
  };
}

/** What a column sorts by: a number, a text, or null for a case that has nothing there. */
function sortKey(column) {
  if (column.startsWith('judge:')) {
    const judge = column.slice(6);
    return (one) => {
      const place = placeOf(one, judge);
      return place === undefined ? null : goodness(one.v[place]);
    };
  }
  return {
    case: (one) => one.n,
    status: (one) => STATUSES.indexOf(one.st),
    suite: (one) => one.s,
    split: (one) => one.h,
    cost: (one) => one.usd ?? null,
    time: (one) => one.sec ?? null,
    trials: (one) => one.k ?? 1,
  }[column];
}

const byName = new Intl.Collator('en', { numeric: true });

function sorted(cases, sort) {
  const down = sort.startsWith('-');
  const key = sortKey(down ? sort.slice(1) : sort);
  if (!key) return cases;
  const keys = new Map(cases.map((one) => [one, key(one)]));
  const sign = down ? -1 : 1;
  return cases.sort((a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (x === y) return a.i - b.i;
    if (x === null) return 1; // what has no value is last in either direction
    if (y === null) return -1;
    return sign * (typeof x === 'string' ? byName.compare(x, y) : x - y) || a.i - b.i;
  });
}

/** The row of controls above the table. */
function filterBar(state, found) {
  const count = (key, value) => CASES.reduce((n, one) => n + (key(one) === value), 0);
  const occurring = (key) => [...new Set(CASES.map(key).filter((value) => value !== undefined && value !== ''))].sort(byName.compare);
  const box = el('input', {
    type: 'search', id: 'search', placeholder: 'Search names, rationales, outputs', 'aria-label': 'Search names, rationales and outputs', value: wellFormed(state.q), spellcheck: 'false', autocomplete: 'off',
    oninput: (event) => go({ q: event.target.value }, true),
  });
  const chosen = new Set(state.status ? state.status.split(',') : []);
  const chips = STATUSES.filter((status) => count((one) => one.st, status)).map((status) =>
    el('button', {
      type: 'button', class: `chip ${status}`, 'aria-pressed': String(chosen.has(status)),
      onclick: () => {
        const next = new Set(chosen);
        if (!next.delete(status)) next.add(status);
        go({ status: [...next].join(',') });
      },
    }, status + ' ', el('span', { class: 'n' }, count((one) => one.st, status).toLocaleString('en'))));
  const controls = [
    SUITES.length > 1 && choice('suite', 'Suite', SUITES.map((suite, n) => [String(n), suite.title]), state.suite),
    choice('split', 'Split', occurring((one) => one.h).map((value) => [value, value]), state.split),
    choice('category', 'Category', occurring((one) => one.c).map((value) => [value, value]), state.category),
    choice('tag', 'Tag', [...new Set(CASES.flatMap((one) => Object.entries(one.t ?? {}).map(([k, v]) => `${k}=${v}`)))].sort(byName.compare).map((value) => [value, value]), state.tag),
    judgeChoice(state),
  ];
  const filtered = ['q', 'status', 'suite', 'split', 'tag', 'category', 'judge'].some((key) => state[key]);
  return el('div', { class: 'filters', role: 'search' },
    el('div', { class: 'line1' }, box, el('div', { class: 'chips', role: 'group', 'aria-label': 'Status' }, ...chips)),
    el('div', { class: 'line2' }, ...controls,
      filtered && button('Clear', () => go({ q: '', status: '', suite: '', split: '', tag: '', category: '', judge: '' }), { class: 'plain' }),
      el('span', { class: 'found', id: 'found' }, foundText(found, state))));
}

function foundText(found, state) {
  const text = found === CASES.length ? plural(found, 'case') : `${found.toLocaleString('en')} of ${plural(CASES.length, 'case')}`;
  if (!state.q) return text;
  if (!CAN_UNPACK) return text + ' (names only: this browser cannot unpack the outputs)';
  return search.done < DATA.chunks.length ? text + ', searching\u2026' : text;
}

/** A select that sets one name of the address; nothing where there is nothing to choose. */
function choice(key, label, values, chosen) {
  if (values.length < 2 && !chosen) return null;
  if (chosen && !values.some(([value]) => value === chosen)) values = [[chosen, chosen], ...values];
  return el('label', { class: chosen ? 'choice on' : 'choice' }, el('span', {}, label),
    el('select', { onchange: (event) => go({ [key]: event.target.value }) }, el('option', { value: '' }, 'all'),
      ...values.slice(0, 2000).map(([value, text]) => el('option', { value, selected: value === chosen }, plain(text)))));
}

function judgeChoice(state) {
  const judges = judgesShown(state);
  const at = state.judge.lastIndexOf(':');
  const [judge, outcome] = at < 0 ? ['', ''] : [state.judge.slice(0, at), state.judge.slice(at + 1)];
  const outcomes = OUTCOMES.slice(0, DATA.baseline ? 7 : 5);
  const select = (values, chosen, label, set) => el('select', { 'aria-label': label, onchange: (event) => set(event.target.value) },
    ...values.map(([value, text]) => el('option', { value, selected: value === chosen }, plain(text))));
  return el('span', { class: judge ? 'choice on' : 'choice' }, el('span', {}, 'Judge'),
    select([['', 'any'], ...judges.map((value) => [value, value])], judge, 'Judge', (value) => go({ judge: value && `${value}:${outcome || 'failed'}` })),
    judge && select(outcomes.map((value) => [value, value]), outcome, 'What the judge said', (value) => go({ judge: `${judge}:${value}` })));
}
