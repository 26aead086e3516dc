// Interval plots: a line with its ends, a point, the bound of a gate. Inline SVG.

const PLOT = { width: 240, height: 26, side: 8 };

/**
 * One estimate on its scale.
 * @param {object} o value, interval [low, high] or null, scale [low, high], bounds: gates' bounds,
 *   zero: mark the zero line, label: what it says in words, tone: class of its colour
 */
function intervalPlot(o) {
  const { width, height, side } = PLOT;
  const [low, high] = o.scale;
  const x = (value) => side + ((Math.min(Math.max(value, low), high) - low) / (high - low || 1)) * (width - 2 * side);
  const y = height / 2;
  const parts = [svg('line', { class: 'axis', x1: side, x2: width - side, y1: y, y2: y })];
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    const at = side + tick * (width - 2 * side);
    parts.push(svg('line', { class: 'axis', x1: at, x2: at, y1: y - 3, y2: y + 3 }));
  }
  if (o.zero) parts.push(svg('line', { class: 'zero', x1: x(0), x2: x(0), y1: 2, y2: height - 2 }));
  if (o.interval) {
    const [a, b] = o.interval.map(x);
    parts.push(svg('line', { class: 'range', x1: a, x2: Math.max(b, a + 1), y1: y, y2: y }));
    for (const end of [a, b]) parts.push(svg('line', { class: 'range end', x1: end, x2: end, y1: y - 5, y2: y + 5 }));
  }
  for (const bound of o.bounds ?? []) {
    const at = x(bound.bound);
    parts.push(svg('line', { class: `bound ${bound.outcome.replaceAll(' ', '-')}`, x1: at, x2: at, y1: 1, y2: height - 1 }, svg('title', {}, plain(bound.head))));
  }
  if (o.value !== null && o.value !== undefined) parts.push(svg('circle', { class: 'point', cx: x(o.value), cy: y, r: 3.5 }));
  return svg('svg', { class: `plot ${o.tone ?? ''}`, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': plain(o.label) }, svg('title', {}, plain(o.label)), ...parts);
}

/** The axis over a column of plots. */
function axis([low, high], format = number) {
  const { width, side } = PLOT;
  const texts = [0, 0.5, 1].map((share) => {
    const anchor = share === 0 ? 'start' : share === 1 ? 'end' : 'middle';
    const at = share === 0 ? 2 : share === 1 ? width - 2 : side + share * (width - 2 * side);
    return svg('text', { x: at, y: 11, 'text-anchor': anchor }, format(low + share * (high - low)));
  });
  return svg('svg', { class: 'plot ticks', viewBox: `0 0 ${width} 14`, 'aria-hidden': 'true' }, ...texts);
}

/** The scale of a judge: rates 0 to 1, the range it names, or what its values and bounds need. */
function scaleOf(kind, range, found, bounds = []) {
  if (kind === 'rate' || kind === 'wins') return [0, 1];
  if (range) return range;
  const values = found.flatMap((one) => [one.value, ...(one.interval ?? [])]).concat(bounds.map((b) => b.bound));
  const known = values.filter((value) => Number.isFinite(value));
  const low = Math.min(...known);
  const high = Math.max(...known);
  const room = (high - low) * 0.1 || Math.abs(high) * 0.1 || 1;
  return known.length ? [low - room, high + room] : [0, 1];
}

/** The counts of statuses as one bar; each part leads to these cases. */
function statusBar(counts, filters) {
  const all = Object.values(counts).reduce((a, b) => a + b, 0);
  const shown = [...STATUSES].reverse().filter((status) => counts[status]);
  const bar = el('div', { class: 'shares', 'aria-hidden': 'true' });
  for (const status of shown) {
    const part = el('span', { class: status });
    part.style.flexGrow = counts[status] / all;
    bar.append(part);
  }
  const links = shown.map((status) =>
    el('a', { class: `count ${status}`, href: casesAddress({ ...filters, status }) }, el('b', {}, counts[status].toLocaleString('en')), ' ' + (status === 'error' && counts[status] > 1 ? 'errors' : status)));
  return el('div', { class: 'statuses' }, bar, el('div', { class: 'counts' }, ...links));
}
