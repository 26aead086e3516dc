// The page of one case: what was asked, what came of it, what each judge said.

const SIGN_OF = { passed: '\u2713', failed: '\u2717', error: '!', skipped: '\u2013', recorded: '\u2022' };
const STATE_ORDER = ['failed', 'error', 'passed', 'recorded', 'skipped'];

function caseView(state) {
  const one = addressed(state);
  if (!one) return el('div', { class: 'page' }, el('p', { class: 'empty' }, 'This report has no such case. ', el('a', { href: addressWith({ view: 'cases', case: '', trial: '' }) }, 'All cases')));
  const listed = matching(state);
  const place = listed.indexOf(one);
  const beside = (step) => (place < 0 ? undefined : listed[place + step]);
  const step = (label, other, key) => (other ? el('a', { class: 'button', href: caseAddress(other), title: `${plain(other.n)} (${key})`, 'data-step': key }, label) : el('span', { class: 'button off' }, label));
  const suite = SUITES[one.s];
  const content = el('div', { class: 'content' }, el('p', { class: 'quiet' }, 'unpacking\u2026'));
  grid.kept = one.i;
  const view = el('div', { class: 'page' },
    el('nav', { class: 'steps', 'aria-label': 'Cases' },
      el('a', { class: 'button', href: addressWith({ view: 'cases', case: '', trial: '' }), 'data-step': 'Escape' }, '\u2190 Cases'),
      el('span', { class: 'quiet' }, place < 0 ? '' : `${(place + 1).toLocaleString('en')} of ${listed.length.toLocaleString('en')}`),
      step('Previous', beside(-1), 'k'), step('Next', beside(1), 'j')),
    el('h1', {}, el('span', { class: `status ${one.st}` }, one.st), ' ', name(one.n)),
    el('p', { class: 'identity' }, ...[SUITES.length > 1 && said(suite.title), one.h, one.g && ['group ', said(one.g)], one.c && ['category ', said(one.c)], ...Object.entries(one.t ?? {}).map(([k, v]) => said(`${k}=${v}`))].filter(Boolean).map((part) => el('span', { class: 'tag' }, part))),
    content);
  show(one, state, content);
  return view;
}

async function show(one, state, content) {
  let found;
  try {
    found = await details(one.i);
  } catch (error) {
    found = undefined;
    content.replaceChildren(el('p', { class: 'note bad' }, `The details of this case cannot be unpacked: ${error.message}`));
    return;
  }
  if (found === null) {
    content.replaceChildren(el('p', { class: 'note bad' }, 'This browser cannot unpack the details of cases (it has no DecompressionStream); any of 2023 or later can. The overview and the table are complete.'));
    return;
  }
  const trial = found.trials.find((other) => String(other.trial) === state.trial) ?? found.trials.find((other) => other.status === one.st) ?? found.trials[0];
  content.replaceChildren(...trialParts(one, found, trial).filter(Boolean));
}

function trialParts(one, found, trial) {
  const tabs = found.trials.length > 1 && el('nav', { class: 'trials', 'aria-label': 'Trials' }, 'Trial ',
    ...found.trials.map((other) => el('a', { class: `button ${other === trial ? 'on' : ''}`, href: addressWith({ trial: String(other.trial) }), 'aria-current': other === trial ? 'true' : null }, el('span', { class: `dot ${other.status}` }), ` ${other.trial} `, el('span', { class: 'unseen' }, other.status))));
  return [
    tabs,
    trial.reason && el('p', { class: `reason ${trial.status}` }, said(whole(trial.reason)), isCut(trial.reason) && cutMark(trial.reason)),
    el('dl', { class: 'tiles' }, ...trial.facts.map(([key, value]) => el('div', {}, el('dt', {}, key), el('dd', {}, said(moment(value)))))),
    ...(trial.notes ?? []).map((note) => el('p', { class: 'note' }, said(whole(note)))),
    verdictPart(trial),
    expectedPart(found, trial),
    outputPart(trial),
    inputPart(found),
    eventPart(trial),
    logPart('Standard error', trial.stderr, trial.status !== 'passed'),
    logPart('Standard output', trial.stdout, false),
    recordPart(trial),
  ];
}

/** A section that can be folded. */
function fold(title, open, ...content) {
  return el('details', { class: 'fold', open }, el('summary', {}, el('h2', {}, title)), el('div', { class: 'inner' }, ...content));
}

// -- verdicts -----------------------------------------------------------------------------------

function verdictPart(trial) {
  const before = new Map((trial.old?.verdicts ?? []).map((verdict) => [verdict.judge, verdict]));
  const shown = [...trial.verdicts].filter((verdict) => verdict.judge !== 'execution' || verdict.state !== 'passed').sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state));
  if (!shown.length) return null;
  const rows = shown.map((verdict) => el('tr', {},
    el('td', { class: 'judge' }, name(verdict.judge), verdict.asked && el('div', { class: 'quiet small' }, said(verdict.asked.join(', ')))),
    el('td', {}, verdictState(verdict)),
    trial.old && el('td', {}, before.has(verdict.judge) ? verdictState(before.get(verdict.judge)) : ''),
    el('td', { class: 'why' }, ...verdictTexts(verdict), trial.old && before.has(verdict.judge) && earlier(verdict, before.get(verdict.judge)))));
  return el('section', {}, el('h2', {}, 'Verdicts'), table('verdicts', ['judge', 'verdict', Boolean(trial.old) && 'baseline', 'why'], rows));
}

function verdictState(verdict) {
  const boolean = verdict.value === 'true' || verdict.value === 'false' || verdict.value === undefined;
  return el('span', { class: `outcome ${verdict.state}` }, SIGN_OF[verdict.state] + ' ', boolean ? verdict.state : plain(verdict.value));
}

function verdictTexts(verdict) {
  return ['rationale', 'error', 'detail'].filter((key) => verdict[key]).flatMap((key) => [
    said(whole(verdict[key]), key === 'detail' ? 'pre' : 'p', { class: key }), isCut(verdict[key]) && cutMark(verdict[key])]);
}

function earlier(now, then) {
  const texts = (verdict) => ['rationale', 'error'].map((key) => whole(verdict[key] ?? '')).join('');
  if (texts(now) === texts(then)) return null;
  return el('details', {}, el('summary', { class: 'quiet small' }, 'what it said of the baseline'), ...verdictTexts(then));
}

// -- input, expected, output --------------------------------------------------------------------

function inputPart(found) {
  if (found.input === undefined) return null;
  const shown = found.input_name.endsWith('.json') && !isCut(found.input) ? indented(found.input) : whole(found.input);
  return fold(['Input ', el('span', { class: 'quiet small' }, found.input_name)], true,
    found.changed && el('p', { class: 'note' }, 'The file was written after this trial began: the agent may have been given something else.'), block(found.input, shown));
}

/** The output that is compared with the expected one: JSON with JSON, else what comes first. */
function mainOutput(trial, expected) {
  const texts = [...(trial.files ?? []).filter((file) => file.text !== undefined && !file.path.startsWith('_modified/')).map((file) => [file.path, file.text]), ...(trial.output === undefined ? [] : [['final message', trial.output]])];
  const structured = (text) => /^\s*[[{]/.test(text) && prettyJson(text) !== null;
  if (structured(whole(expected))) return texts.find(([, text]) => structured(whole(text))) ?? null;
  return texts[0] ?? null;
}

/** JSON with its keys in order, so that only what differs differs; other text as it is. */
const comparable = (text) => prettyJson(text, true) ?? text.replace(/\s+$/, '');

function expectedPart(found, trial) {
  if (found.expected === undefined) return null;
  const main = mainOutput(trial, found.expected);
  const open = trial.status !== 'passed';
  if (!main) return fold('Expected output', open, block(found.expected));
  const cut = [found.expected, main[1]].find(isCut);
  return fold(['Expected output ', el('span', { class: 'quiet small' }, 'compared with ', said(main[0]))], open,
    differenceView(comparable(whole(found.expected)), comparable(whole(main[1])), ['expected', 'output']), cut && cutMark(cut));
}

function outputPart(trial) {
  const files = trial.files ?? [];
  const old = new Map((trial.old?.files ?? []).map((file) => [file.path, file]));
  if (trial.output === undefined && !files.length) return trial.record ? fold('Output', true, el('p', { class: 'quiet' }, 'The agent left no output.')) : null;
  const shown = files.filter((file) => file.path);
  const more = files.find((file) => file.more)?.more ?? 0;
  return fold('Output', true,
    trial.output !== undefined && piece('final message', trial.output, trial.old?.output, Boolean(trial.old)),
    ...shown.map((file, n) => fileView(file, old.get(file.path), n < 6, Boolean(trial.old))),
    more > 0 && el('p', { class: 'quiet' }, `and ${plural(more, 'more file')}`));
}

/** One text, beside that of the baseline where there is one. */
function piece(title, text, old, compared) {
  const pretty = (value) => (!isCut(value) && /^\s*[[{]/.test(whole(value)) ? indented(whole(value)) : whole(value));
  const head = el('h3', {}, said(title));
  if (!compared) return el('div', { class: 'piece' }, head, block(text, pretty(text)));
  if (old === undefined) return el('div', { class: 'piece' }, el('h3', {}, said(title), el('span', { class: 'quiet small' }, ' not in the baseline')), block(text, pretty(text)));
  if (whole(old) === whole(text)) return el('div', { class: 'piece' }, el('h3', {}, said(title), el('span', { class: 'quiet small' }, ' the same in the baseline')), block(text, pretty(text)));
  return el('div', { class: 'piece' }, head,
    el('div', { class: 'pair' }, el('div', {}, el('h4', {}, 'this run'), block(text, pretty(text))), el('div', {}, el('h4', {}, 'baseline'), block(old, pretty(old)))),
    el('details', {}, el('summary', { class: 'quiet small' }, 'line by line'), differenceView(pretty(old), pretty(text), ['baseline', 'this run'])));
}

function fileView(file, old, open, compared) {
  const modified = file.path.startsWith('_modified/');
  const title = modified ? file.path.slice('_modified/'.length) : file.path;
  const head = el('summary', {}, said(title, 'span', { class: 'path' }), el('span', { class: 'quiet small' }, ` ${bytes(file.size)}${modified ? ', changed in place' : ''}`));
  let content;
  if (file.src) content = el('img', { src: file.src, alt: plain(title) });
  else if (file.image) content = el('p', { class: 'cut' }, `${file.image} image, not in this report because of its size`);
  else if (file.binary) content = el('p', { class: 'quiet' }, 'binary');
  else if (file.text === undefined) content = el('p', { class: 'quiet' }, 'only listed');
  else if (file.was !== undefined) content = [differenceView(whole(file.was), whole(file.text), ['given to the agent', 'left by the agent']), isCut(file.text) && cutMark(file.text)];
  else content = piece('', file.text, old?.text, compared);
  return el('details', { class: 'file', open }, head, content);
}

// -- events, logs, record -----------------------------------------------------------------------

function eventPart(trial) {
  const events = trial.events ?? [];
  if (!events.length) return null;
  const results = new Map();
  for (const event of events) if (event.type === 'tool_result' && event.id) results.set(event.id, event);
  const calls = new Set(events.filter((event) => event.type === 'tool_call' && event.id).map((event) => event.id));
  const shown = events.filter((event) => !(event.type === 'tool_result' && calls.has(event.id)));
  const list = el('ol', { class: 'events' }, ...shown.slice(0, 2000).map((event) => eventView(event, results)));
  const used = events.filter((event) => event.type === 'tool_call').length;
  return fold(['Conversation ', el('span', { class: 'quiet small' }, plural(events.length, 'event') + (used ? `, ${plural(used, 'tool call')}` : ''))], events.length <= 60, list, trial.events_cut && cutMark(trial.events_cut));
}

function eventView(event, results) {
  const part = (key) => event[key] !== undefined && said(event[key], 'pre', { tabindex: 0 });
  const cut = (of, key) => of[key + '_cut'] > 0 && el('p', { class: 'cut' }, `cut: ${of[key + '_cut'].toLocaleString('en')} characters`);
  const who = event.agent && el('span', { class: 'tag' }, 'agent ', said(event.agent));
  if (event.type === 'message') return el('li', { class: 'message' }, who, part('text'), cut(event, 'text'));
  const title = { tool_call: 'tool', tool_result: 'result', thinking: 'thinking', question: 'question', error: 'error', result: 'end' }[event.type] ?? event.type;
  const result = event.type === 'tool_call' ? results.get(event.id) : undefined;
  const bad = event.is_error || result?.is_error || event.type === 'error';
  const first = (event.input ?? event.text ?? '').replace(/\s+/g, ' ').slice(0, 140);
  const body = [
    event.input !== undefined && el('pre', { tabindex: 0 }, ...nodes(indented(event.input))), cut(event, 'input'),
    part('text'), cut(event, 'text'), part('answer'),
    result && result.text !== undefined && el('div', { class: 'result' }, el('h4', {}, result.is_error ? 'error' : 'result'), said(result.text, 'pre', { tabindex: 0 }), cut(result, 'text')),
  ];
  return el('li', { class: bad ? 'event failed' : 'event' }, el('details', { open: event.type === 'error' || event.type === 'question' },
    el('summary', {}, el('span', { class: 'kind' }, plain(title)), event.name && [' ', said(event.name, 'b')], ' ', said(first, 'span', { class: 'quiet' }), bad && el('span', { class: 'outcome failed' }, ' error')), who, ...body));
}

function logPart(title, text, open) {
  return text === undefined || whole(text) === '' ? null : fold(title, open, block(text));
}

function recordPart(trial) {
  if (!trial.record) return null;
  return el('p', { class: 'quiet record' }, 'Record: ', fileLink(trial.record), trial.old?.record && [el('br'), 'Baseline: ', fileLink(trial.old.record)],
    trial.others && el('details', {}, el('summary', {}, plural(trial.others.length, 'other file')), el('ul', {}, ...trial.others.map(([path, size]) => el('li', {}, said(path), ` ${bytes(size)}`)))));
}
