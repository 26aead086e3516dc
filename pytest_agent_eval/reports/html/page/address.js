// The address: everything that a view depends on is in the part of the URL behind #, so that it can
// be sent to somebody, and so that the back button works.

const NAMES = ['view', 'case', 'trial', 'suite', 'q', 'status', 'split', 'tag', 'category', 'judge', 'sort'];

/** What the address says: a mapping of NAMES to text; what it does not say is ''. */
function address(text = location.hash) {
  const found = new URLSearchParams(text.replace(/^#/, ''));
  return Object.fromEntries(NAMES.map((key) => [key, found.get(key) ?? '']));
}

/** The address with changes; '' takes a name out. */
function addressWith(changes, from = address()) {
  const found = { ...from, ...changes };
  const parts = NAMES.filter((key) => found[key]).map((key) => `${key}=${encodeURIComponent(String(found[key]).toWellFormed?.() ?? found[key])}`);
  return '#' + (parts.join('&') || 'view=overview');
}

/** Go there. With `instead` the back button does not stop here. */
function go(changes, instead = false) {
  const target = addressWith(changes);
  if (target === location.hash) return;
  if (instead) location.replace(target);
  else location.hash = target;
}

/** Where the page of a case is, with the filters that its neighbours come from. */
function caseAddress(one, from = address()) {
  const several = SUITES.length > 1;
  return addressWith({ view: 'case', case: several ? `${one.s}:${one.n}` : one.n, trial: '' }, from);
}

/** The case that an address names, or undefined. */
function addressed(state) {
  const several = SUITES.length > 1;
  return CASES.find((one) => (several ? `${one.s}:${one.n}` : one.n) === state.case || wellFormed(several ? `${one.s}:${one.n}` : one.n) === state.case);
}

const wellFormed = (text) => text.toWellFormed?.() ?? text;

/** The address of the table with these filters and no others. */
const casesAddress = (filters) => addressWith({ view: 'cases', ...filters }, address(''));
