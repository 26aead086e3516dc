// The data: what the first views need is in one island, the rest in chunks that are unpacked when
// they are needed.

const DATA = JSON.parse(document.getElementById('data').textContent);
const CASES = DATA.cases;
const SUITES = DATA.suites;
const CAN_UNPACK = typeof DecompressionStream === 'function';
const STATUSES = ['error', 'failed', 'tolerated', 'skipped', 'passed'];
const STATES = { p: 'passed', f: 'failed', r: 'recorded', s: 'skipped', e: 'error' };
const KEPT = 12;
const unpacked = new Map();

CASES.forEach((one, index) => {
  one.i = index;
});

/** Number of the chunk that a case is in. */
function chunkOf(index) {
  let low = 0;
  let high = DATA.chunks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (DATA.chunks[middle] <= index) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The details of the cases of a chunk; the last few chunks are kept. */
async function chunk(id) {
  if (unpacked.has(id)) return unpacked.get(id);
  const found = await unpack(id);
  unpacked.set(id, found);
  if (unpacked.size > KEPT) unpacked.delete(unpacked.keys().next().value);
  return found;
}

async function unpack(id) {
  const text = atob(document.getElementById('chunk-' + id).textContent);
  const packed = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n += 1) packed[n] = text.charCodeAt(n);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

/** The details of one case, or null where this browser cannot unpack them. */
async function details(index) {
  if (!CAN_UNPACK) return null;
  const id = chunkOf(index);
  return (await chunk(id))[index - DATA.chunks[id]];
}

/** What the search looks at: all texts of a case in lower case, made when first asked for. */
const search = { texts: [], done: 0, running: null };

function searchable(progress) {
  if (!CAN_UNPACK || search.running || search.done === DATA.chunks.length) return;
  search.running = (async () => {
    for (let id = search.done; id < DATA.chunks.length; id += 1) {
      const found = unpacked.get(id) ?? (await unpack(id));
      found.forEach((one, n) => {
        search.texts[DATA.chunks[id] + n] = textsOf(one).join('\n').toLowerCase();
      });
      search.done = id + 1;
      if (id % 8 === 7) {
        progress();
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
    search.running = null;
    progress();
  })();
}

function textsOf(one) {
  const found = [];
  for (const trial of one.trials) {
    found.push(whole(trial.reason), whole(trial.output), whole(trial.stdout));
    for (const verdict of trial.verdicts) found.push(whole(verdict.rationale), verdict.error ? whole(verdict.error) : '', whole(verdict.detail));
    for (const file of trial.files ?? []) found.push(file.path ?? '', whole(file.text));
    for (const event of trial.events ?? []) if (event.type === 'message') found.push(event.text ?? '');
  }
  return found.filter(Boolean);
}

/** A cell's number: how good it is; null for none. */
const goodness = (cell) => (!cell || cell[1] === null ? null : Number(cell[1]));

/** What became of a judge's verdict since the baseline: 1 better, -1 worse, 0 the same, or null. */
function changed(one, place) {
  if (!one.o) return null;
  const now = goodness(one.v[place]);
  const then = goodness(one.o[place]);
  return now === null || then === null ? null : Math.sign(now - then);
}
