// The first view: what the run came to, and what that can show.

function overviewView() {
  return el('div', { class: 'overview' },
    banner(),
    ...SUITES.filter((suite) => suite.aggregates.length || suite.gates.length || Object.keys(suite.statuses).length).map((suite) => suiteSection(suite, SUITES.indexOf(suite))),
    runSection());
}

function banner() {
  const commit = DATA.facts.find(([key]) => key === 'commit');
  const started = DATA.facts.find(([key]) => key === 'started');
  return el('section', { class: `banner ${DATA.good ? 'good' : 'bad'}` },
    el('h1', {}, plain(DATA.verdict[0].toUpperCase() + DATA.verdict.slice(1))),
    el('p', { class: 'quiet' }, 'Run ', said(DATA.id), started && [', ', said(moment(started[1]))], commit && [', commit ', said(commit[1].replace(/^([0-9a-f]{12})[0-9a-f]+/, '$1'))], DATA.baseline && [', compared with ', said(DATA.baseline)]));
}

function suiteSection(suite, place) {
  const filters = SUITES.length > 1 ? { suite: String(place) } : {};
  return el('section', { class: 'suite' },
    el('h2', {}, said(suite.title), ' ', el('span', { class: 'quiet small' }, said(suite.file))),
    statusBar(suite.statuses, filters),
    el('dl', { class: 'tiles' }, ...suite.usage.flatMap(([key, value]) => el('div', {}, el('dt', {}, key), el('dd', {}, plain(value)))), coverageTile(suite)),
    suite.sealed > 0 && el('p', { class: 'note' }, `The holdout is sealed: ${plural(suite.sealed, 'case')} ${suite.sealed === 1 ? 'is' : 'are'} shown as aggregates only.`),
    comparisonPart(suite),
    worstPart(place, filters),
    gatePart(suite),
    judgePart(suite, filters),
    claimPart(suite));
}

function coverageTile(suite) {
  const sum = (n) => suite.coverage.reduce((all, half) => all + half[n], 0);
  const [total, selected, finished] = [sum(1), sum(2), sum(3)];
  if (!total || (finished === selected && selected === total)) return null;
  const text = selected < total ? `${finished} of ${selected} selected, ${total} in all` : `${finished} of ${selected}`;
  return el('div', {}, el('dt', {}, 'cases with a result'), el('dd', {}, text));
}

/** The first cases that did not pass, with the reason. */
function worstPart(place, filters) {
  const bad = CASES.filter((one) => one.s === place && (one.st === 'error' || one.st === 'failed'));
  if (!bad.length) return null;
  const rows = bad.slice(0, LISTED).map((one) => el('tr', {}, el('td', {}, el('span', { class: `status ${one.st}` }, one.st)), el('td', { class: 'judge' }, el('a', { href: caseAddress(one, address('')) }, name(one.n))), el('td', { class: 'why' }, said(one.r ?? ''))));
  return el('div', { class: 'part' }, el('h3', {}, 'Did not pass'), table('worst', ['status', 'case', 'why'], rows),
    bad.length > LISTED && el('p', { class: 'small' }, el('a', { href: casesAddress({ ...filters, status: 'failed,error' }) }, `All ${plural(bad.length, 'case')}`)));
}

// -- comparison ---------------------------------------------------------------------------------

const TONES = { better: 'passed', worse: 'failed', 'no difference shown': 'skipped', 'not compared': 'skipped' };
const SIGNS = { better: '\u25b2', worse: '\u25bc', 'no difference shown': '\u2248', 'not compared': '\u2013' };

function comparisonPart(suite) {
  if (!suite.comparisons.length && !suite.changes.length) return null;
  const widest = Math.max(0.1, ...suite.comparisons.filter((one) => one.kind === 'rate').flatMap((one) => [Math.abs(one.difference ?? 0), ...(one.interval ?? []).map(Math.abs)]));
  const reach = Math.min(1, Math.ceil(widest * 10) / 10);
  const overall = new Set(suite.comparisons.filter((one) => one.split === 'all').map((one) => one.judge));
  const decided = (one) => one.outcome === 'better' || one.outcome === 'worse';
  const first = suite.comparisons.filter((one) => one.split === 'all' || decided(one) || !overall.has(one.judge));
  const halves = suite.comparisons.filter((one) => !first.includes(one));
  const tableOf = (shown) => {
    const several = new Set(shown.map((one) => one.split)).size > 1;
    const rows = shown.map((one) => comparisonRow(one, suite, reach, several));
    return table('comparison', ['outcome', 'judge', several && 'split', right('before'), right('now'), right('difference'), axis([-reach, reach], (v) => (v > 0 ? '+' : v < 0 ? '\u2212' : '') + Math.abs(v).toFixed(1)), right('pairs'), right('could show'), right('p')], rows);
  };
  return el('div', { class: 'part' },
    el('h3', {}, 'Compared with ', said(DATA.baseline || 'the baseline')),
    suite.changes.length > 0 && el('ul', { class: 'changes' }, ...suite.changes.map((text) => el('li', {}, said(text)))),
    first.length > 0 && tableOf(first),
    halves.length > 0 && el('details', {}, el('summary', { class: 'quiet small' }, 'dev and holdout by themselves'), tableOf(halves)),
    caseChanges(suite));
}

function comparisonRow(one, suite, reach, several) {
  const judge = suite.judges.find((found) => found.name === one.judge);
  const digits = (value) => (value === null ? '' : value.toFixed(2));
  const signed = (value) => (value === null ? '' : (value > 0 ? '+' : value < 0 ? '\u2212' : '') + Math.abs(value).toFixed(2));
  let scale = [-reach, reach];
  if (one.kind === 'mean') {
    const span = judge?.range ? judge.range[1] - judge.range[0] : Math.max(...[one.difference ?? 0, ...(one.interval ?? [])].map(Math.abs)) || 1;
    scale = [-span * reach, span * reach];
  }
  const p = one.p_adjusted ?? one.p;
  const label = `${one.judge}: difference ${signed(one.difference)}${one.interval ? ` [${signed(one.interval[0])}, ${signed(one.interval[1])}], ${one.method}` : one.why ? `, no interval: ${one.why}` : ''}`;
  const least = one.smallest === null ? null : `${plural(one.pairs, 'pair')} could have shown a difference of ${digits(one.smallest)}`;
  return el('tr', {},
    el('td', {}, el('span', { class: `outcome ${TONES[one.outcome]}` }, SIGNS[one.outcome] + ' ', one.outcome), one.why && el('div', { class: 'quiet small' }, plain(one.why))),
    el('td', {}, name(one.judge), one.unvalidated && unvalidated()),
    several && el('td', {}, one.split),
    el('td', { class: 'num' }, digits(one.old)),
    el('td', { class: 'num' }, digits(one.new)),
    el('td', { class: 'num' }, signed(one.difference)),
    el('td', { class: 'plotted' }, one.difference === null ? '' : intervalPlot({ value: one.difference, interval: one.interval, scale, zero: true, label, tone: TONES[one.outcome] })),
    el('td', { class: 'num' }, one.pairs.toLocaleString('en')),
    el('td', { class: 'num quiet', title: least }, digits(one.smallest)),
    el('td', { class: 'num', title: one.p_adjusted !== null && one.p !== null ? `Holm; unadjusted ${one.p.toFixed(3)}` : null }, p === null ? '' : p < 0.001 ? '<0.001' : p.toFixed(3)));
}

/** Names of the cases that changed, those that got worse first. */
function caseChanges(suite) {
  const place = SUITES.indexOf(suite);
  const every = suite.comparisons.filter((one) => one.split === 'all').length ? suite.comparisons.filter((one) => one.split === 'all') : suite.comparisons;
  const lists = [];
  for (const [key, title] of [['regressed', 'Got worse'], ['improved', 'Got better']]) {
    const judges = new Map();
    for (const one of every) for (const label of one[key]) judges.set(label, [...(judges.get(label) ?? []), one.judge]);
    if (judges.size) lists.push(el('div', {}, el('h4', {}, `${title}: ${plural(judges.size, 'case')}`), caseLinks([...judges.keys()], place, (label) => judges.get(label))));
  }
  for (const [key, title] of [['only_new', 'In this run only'], ['only_old', 'In the baseline only']]) {
    const labels = [...new Set(every.flatMap((one) => one[key]))];
    if (labels.length) lists.push(el('div', {}, el('h4', {}, `${title}: ${plural(labels.length, 'case')}`), caseLinks(labels, place)));
  }
  return lists.length ? el('div', { class: 'lists' }, ...lists) : null;
}

const LISTED = 12;

function caseLinks(labels, place, about) {
  const item = (label) => {
    const one = CASES.find((found) => found.s === place && found.n === label);
    const judges = about?.(label);
    return el('li', {}, one ? el('a', { href: caseAddress(one, address('')) }, name(label)) : name(label), judges && el('span', { class: 'quiet small' }, ' ', plain(judges.join(', '))));
  };
  const list = el('ul', { class: 'links' }, ...labels.slice(0, LISTED).map(item));
  const more = labels.length - LISTED;
  if (more > 0) list.append(el('li', {}, button(`${more.toLocaleString('en')} more`, (event) => event.target.parentElement.replaceWith(...labels.slice(LISTED).map(item)), { class: 'plain' })));
  return list;
}

// -- gates, judges, claims ----------------------------------------------------------------------

const right = (text) => el('th', { scope: 'col', class: 'num' }, text);

function table(kind, headings, rows) {
  return el('div', { class: 'wide' }, el('table', { class: kind }, el('thead', {}, el('tr', {}, ...headings.filter((h) => h !== false).map((h) => (h instanceof Element && h.tagName === 'TH' ? h : el('th', { scope: 'col' }, h))))), el('tbody', {}, ...rows)));
}

const GATE_SIGNS = { passed: '\u2713', missed: '\u2717', 'not decided': '\u2013' };
const GATE_TONES = { passed: 'passed', missed: 'failed', 'not decided': 'skipped' };

function gatePart(suite) {
  if (!suite.gates.length) return null;
  const rows = [...suite.gates].sort((a, b) => (b.outcome === 'missed') - (a.outcome === 'missed')).map((gate) => el('tr', {},
    el('td', {}, el('span', { class: `outcome ${GATE_TONES[gate.outcome]}` }, GATE_SIGNS[gate.outcome] + ' ', gate.outcome)),
    el('td', {}, said(gate.head), gate.unvalidated && unvalidated()),
    el('td', {}, said(gate.said))));
  return el('div', { class: 'part' }, el('h3', {}, 'Gates'), table('gates', ['outcome', 'gate', 'result'], rows));
}

const unvalidated = () => el('span', { class: 'mark', title: 'It agrees with its human labels no better than chance would.' }, 'unvalidated');

const BOUNDED = ['min_mean', 'min_pass_rate', 'min_win_rate'];

function judgePart(suite, filters) {
  const rows = suite.judges.flatMap((judge) => judgeRows(judge, suite, filters));
  if (!rows.length) return null;
  return el('div', { class: 'part' }, el('h3', {}, 'Judges'), table('judges', ['judge', 'split', 'estimate', axis([0, 1], (v) => v.toFixed(1)), right('cases'), ''], rows));
}

function judgeRows(judge, suite, filters) {
  const found = suite.aggregates.filter((one) => one.judge === judge.name);
  const shown = found.filter((one) => found.length !== 2 || one.split !== 'all' || one.kind === 'mixed'); // one half: "all" is the same
  return shown.map((one, n) => {
    const own = suite.gates.filter((gate) => gate.judge === judge.name && !gate.part && BOUNDED.includes(gate.key) && (shown.length === 1 || gate.split === one.split));
    return el('tr', { class: n ? 'more' : 'first' },
      n === 0 && el('td', { rowspan: shown.length, class: 'judge' }, el('a', { href: casesAddress({ ...filters, judge: `${judge.name}:failed` }) }, name(judge.name)), judge.kind && el('div', { class: 'quiet small' }, plain(judge.kind)), judge.unvalidated && unvalidated()),
      el('td', { class: 'quiet' }, one.split),
      el('td', { class: 'num estimate' }, estimateText(one)),
      el('td', { class: 'plotted' }, one.value === null ? '' : judgePlot(judge, one, found, own, n === shown.length - 1)),
      el('td', { class: 'num' }, one.scored.toLocaleString('en')),
      el('td', { class: 'small remarks' }, ...own.map((gate) => el('span', { class: GATE_TONES[gate.outcome] }, `gate \u2265 ${number(gate.bound)} ${gate.outcome}`)), el('span', { class: 'quiet' }, plain(remarks(one)))));
  });
}

function judgePlot(judge, one, found, bounds, last) {
  const scale = scaleOf(one.kind, judge.range, found, bounds);
  const label = `${judge.name}, ${one.split}: ${estimateText(one)}${one.method ? `, ${one.method}` : `, no interval: ${one.why}`}`;
  const plot = intervalPlot({ value: one.value, interval: one.interval, scale, bounds, label, tone: bounds.some((gate) => gate.outcome === 'missed') ? 'failed' : '' });
  if (!last || (scale[0] === 0 && scale[1] === 1)) return plot;
  return el('div', { class: 'scaled' }, plot, el('div', { class: 'ends quiet small' }, el('span', {}, number(scale[0])), el('span', {}, number(scale[1]))));
}

function estimateText(one) {
  if (one.value === null) return '\u2013';
  let digits = 2;
  while (one.interval && digits < 6 && one.interval[0].toFixed(digits) === one.interval[1].toFixed(digits)) digits += 1;
  return one.value.toFixed(digits) + (one.interval ? ` [${one.interval.map((end) => end.toFixed(digits)).join(', ')}]` : '');
}

function remarks(one) {
  const parts = [];
  if (one.kind === 'wins') parts.push(`${one.wins[0]} wins, ${one.wins[1]} losses, ${one.wins[2]} ties`);
  if (!one.interval && one.why) parts.push(one.value === null ? one.why : `no interval: ${one.why}`);
  if (one.clusters !== one.scored && one.scored) parts.push(`${one.clusters} independent`);
  if (one.errored) parts.push(plural(one.errored, 'judge error'));
  if (one.skipped) parts.push(`${one.skipped} skipped`);
  if (one.at_k !== null) parts.push(`pass@${one.trials} ${one.at_k.toFixed(2)}, pass^${one.trials} ${one.hat_k.toFixed(2)}, ${one.flaky} flaky`);
  return parts.join(', ');
}

function claimPart(suite) {
  if (!suite.claims.length && !suite.calibrations.length) return null;
  return el('div', { class: 'part' }, el('h3', {}, 'What this can show'),
    el('ul', { class: 'claims' },
      ...suite.calibrations.map((one) => el('li', { class: one.validated ? '' : 'warned' }, said(one.text), one.differ.length > 0 && [el('br'), 'differ: ', caseLinks(one.differ, SUITES.indexOf(suite))])),
      ...suite.claims.map((text) => el('li', {}, said(text)))));
}

function runSection() {
  return el('section', { class: 'run' }, el('h2', {}, 'This run'),
    DATA.notes.length > 0 && el('ul', { class: 'claims' }, ...DATA.notes.map((text) => el('li', { class: 'warned' }, said(text)))),
    el('dl', { class: 'facts' }, ...[['run', DATA.id], ...DATA.facts].flatMap(([key, value]) => [el('dt', {}, key), el('dd', {}, said(moment(value)))])));
}
