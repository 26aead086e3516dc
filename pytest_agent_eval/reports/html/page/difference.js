// What changed between two texts, line by line (Myers 1986, An O(ND) difference algorithm).

const MOST_CHANGES = 800;
const AROUND = 3;

/** [[' ' | '-' | '+', line], ...]; texts that differ in very many lines are shown as replaced. */
function difference(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = myers(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [...a.slice(0, start).map((line) => [' ', line]), ...middle, ...a.slice(a.length - end).map((line) => [' ', line])];
}

function myers(a, b) {
  const replaced = () => [...a.map((line) => ['-', line]), ...b.map((line) => ['+', line])];
  if (!a.length || !b.length) return replaced();
  const most = Math.min(a.length + b.length, MOST_CHANGES);
  let reach = new Map([[1, 0]]);
  const steps = [];
  for (let d = 0; d <= most; d += 1) {
    steps.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? reach.get(k + 1) : reach.get(k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      reach.set(k, x);
      if (x >= a.length && y >= b.length) return walkedBack(steps, a, b);
    }
  }
  return replaced();
}

function walkedBack(steps, a, b) {
  const found = [];
  let x = a.length;
  let y = b.length;
  for (let d = steps.length - 1; d >= 0; d -= 1) {
    const reach = steps[d];
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const px = d ? reach.get(from) : 0;
    const py = d ? px - from : 0;
    while (x > px && y > py && a[x - 1] === b[y - 1]) {
      found.push([' ', a[x - 1]]);
      x -= 1;
      y -= 1;
    }
    if (!d) break;
    if (down) found.push(['+', b[(y -= 1)]]);
    else found.push(['-', a[(x -= 1)]]);
  }
  return found.reverse();
}

/** A difference as an element: changed lines, and a few lines around them. */
function differenceView(before, after, labels = ['before', 'after']) {
  const ended = before.endsWith('\n') && after.endsWith('\n') ? -1 : undefined; // no empty line at the end
  const lines = difference(before.slice(0, ended), after.slice(0, ended));
  if (lines.every(([sign]) => sign === ' ')) return el('p', { class: 'quiet' }, 'no difference');
  const near = new Uint8Array(lines.length);
  lines.forEach(([sign], n) => {
    if (sign !== ' ') near.fill(1, Math.max(0, n - AROUND), n + AROUND + 1);
  });
  const view = el('div', { class: 'difference', tabindex: 0 });
  view.append(el('div', { class: 'legend' }, el('span', { class: 'gone' }, '\u2212 ' + labels[0]), ' ', el('span', { class: 'come' }, '+ ' + labels[1])));
  let hidden = 0;
  const gap = () => {
    if (hidden) view.append(el('div', { class: 'gap' }, plural(hidden, 'equal line')));
    hidden = 0;
  };
  lines.slice(0, 4000).forEach(([sign, line], n) => {
    if (!near[n]) {
      hidden += 1;
      return;
    }
    gap();
    const kind = { '-': 'gone', '+': 'come', ' ': 'same' }[sign];
    view.append(el('div', { class: `line ${kind}` }, el('span', { class: 'sign' }, sign === '-' ? '\u2212' : sign), said(line)));
  });
  gap();
  return view;
}
