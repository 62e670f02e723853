// Weights stand in script elements of their own, one for each head, and are unpacked when a head is
// asked for. All that the page shows of them comes from `rowOf`.

const KEPT = 192 * 2 ** 20; // bytes of unpacked levels that are kept
const PAUSE = 16; // milliseconds after which the page may draw
const PATTERNS = 24; // of the heads that were shown last
const unpacked = (id) => inflated(byId(id).textContent);
const kept = { levels: new Map(), bytes: 0, patterns: new Map() };

function levelsOf(head) {
  if (!kept.levels.has(head)) kept.levels.set(head, unpacked("head-" + head).then((levels) => {
    levels.rests = data.heads[head].rests;
    kept.bytes += levels.length;
    if (kept.bytes > KEPT) { // not kept, but read anew
      kept.bytes -= levels.length;
      kept.levels.delete(head);
    }
    return levels;
  }));
  return kept.levels.get(head);
}

let drawnAt = 0;

// lets the page draw and listen, in what takes long
async function breathe() {
  if (performance.now() - drawnAt < PAUSE) return;
  await new Promise((go) => setTimeout(go));
  drawnAt = performance.now();
}

// what tokens of a side are merged to: from which token, up to and without which
const singles = Object.fromEntries(Object.values(SIDES).map((side) => [side, data[side].labels.map((_, i) => [i, i + 1])]));
const groupsOf = (side) => state.unit === "tokens" ? singles[side] : data[side].units[state.unit].groups;
const labelsOf = (side) => state.unit === "tokens" ? data[side].labels : data[side].units[state.unit].labels;

const MANY = data.keys.labels.length;
const seenBy = (query) => data.causal ? data.before + query + 1 : MANY; // how many keys
const startOf = (query) => data.causal ? query * data.before + query * (query + 1) / 2 : query * MANY;
const OF_LEVEL = Float64Array.from({ length: 256 ** data.bytes }, (_, level) => (level / (256 ** data.bytes - 1)) ** 2 * data.top);
// two bytes stand in two halves: the high ones of all weights, then the low ones
const levelAt = data.bytes === 2
  ? (levels, at) => OF_LEVEL[levels[at] * 256 + levels[levels.length / 2 + at]]
  : (levels, at) => OF_LEVEL[levels[at]];

// A row of what is shown; NaN is masked. Weight on a word is the sum over its tokens, a word's row
// the mean over its tokens.
function rowOf(levels, row) {
  const values = wholeRow(levels, row);
  return state.sink ? withoutRests(values, removedOf(levels)).values : values;
}

function wholeRow(levels, row) {
  const groups = groupsOf("keys"), values = new Float64Array(groups.length).fill(NaN);
  if (state.unit === "tokens") { // nearly always, and much faster
    const start = startOf(row), seen = Math.min(groups.length, seenBy(row));
    for (let key = 0; key < seen; key++) values[key] = levelAt(levels, start + key);
  } else for (let column = 0; column < groups.length; column++) values[column] = wholeCell(levels, row, column, groups);
  return values;
}

function wholeCell(levels, row, column, keys = groupsOf("keys")) {
  const [top, bottom] = groupsOf("queries")[row], [left, right] = keys[column];
  if (left >= seenBy(bottom - 1)) return NaN;
  let sum = 0;
  for (let query = top; query < bottom; query++) {
    const start = startOf(query), end = Math.min(right, seenBy(query));
    for (let key = left; key < end; key++) sum += levelAt(levels, start + key);
  }
  return sum / (bottom - top);
}

// the columns of the first token and of those on which a head rests
const removedOf = ({ rests }) => new Set(groupsOf("keys").flatMap(([first, after], column) => !column || rests.some((key) => key >= first && key < after) ? [column] : []));

// The weight on removed columns is taken away, and what is left is brought to 1 again unless it is
// little. `share` is how much of the row they had; NaN where the row may attend to nothing else.
function withoutRests(row, removed) {
  const kept = row.map((value, column) => removed.has(column) ? NaN : value);
  const all = summed(row), sum = summed(kept), share = 1 - sum / all; // NaN where nothing is kept
  const whole = !(sum > 2 * data.error) ? NaN : 1 - share < data.little ? all : sum; // NaN: rounding left it
  return { values: kept.map((value) => value / whole), share };
}

// { rows, columns, values, share }, `share` of all weight being what was removed
async function patternOf(head) {
  const name = () => [head, state.unit, state.sink].join();
  if (!kept.patterns.has(name())) {
    const levels = await levelsOf(head); // the state may be another now
    kept.patterns.set(name(), wholePattern(levels));
    if (kept.patterns.size > PATTERNS) kept.patterns.delete(kept.patterns.keys().next().value);
  }
  return kept.patterns.get(name());
}

function wholePattern(levels) {
  const [rows, columns] = [groupsOf("queries").length, groupsOf("keys").length];
  const values = new Float32Array(rows * columns), shares = [], removed = removedOf(levels);
  for (let row = 0; row < rows; row++) {
    const whole = wholeRow(levels, row), left = state.sink && withoutRests(whole, removed);
    values.set(left ? left.values : whole, row * columns);
    if (left && !Number.isNaN(left.share)) shares.push(left.share);
  }
  return { rows, columns, values, share: shares.reduce((sum, share) => sum + share, 0) / shares.length };
}

// How much a head attends from a token to each one on the other side, or from each one to it: the
// mean over queries of the sum over keys, as pieces of a word are put together; NaN is masked.
function profileOf(levels, token) {
  const rows = groupsOf("queries").length, end = endOf(token);
  if (token.side === "q") {
    const sums = new Float64Array(groupsOf("keys").length).fill(NaN);
    for (let row = token.index; row < end; row++) rowOf(levels, row).forEach((value, key) => {
      if (!Number.isNaN(value)) sums[key] = (sums[key] || 0) + value / (end - token.index);
    });
    return sums;
  }
  return Float64Array.from({ length: rows }, (_, row) => {
    if (state.sink) return summed(rowOf(levels, row).subarray(token.index, end));
    return summed(Array.from({ length: end - token.index }, (_, i) => wholeCell(levels, row, token.index + i)));
  });
}

function summed(values) {
  let sum = 0, seen = false;
  for (const value of values) if (!Number.isNaN(value)) [sum, seen] = [sum + value, true];
  return seen ? sum : NaN;
}

let loads = 0;

// false where another choice came in between
async function load() {
  const mine = ++loads, found = [];
  for (const [i, head] of state.heads.entries()) {
    found.push({ ...await patternOf(head), name: data.heads[head].label, color: COLORS[i % COLORS.length] });
    if (mine !== loads) return false;
  }
  patterns = found;
  checkPin();
  return true;
}

const weight = (pattern, query, key) => pattern.values[query * pattern.columns + key];
const full = () => state.sink ? 1 : data.top; // a row sums to 1 at most once rests are left out
const shown = (value) => !Number.isNaN(value) && value >= state.threshold;

// of the first head that is shown, the mean over queries of the sum over keys
function weightOf(queries, keys) {
  let sum = 0, seen = false;
  for (let query = queries[0]; query < queries[1]; query++) for (let key = keys[0]; key < keys[1]; key++) {
    const value = query < patterns[0].rows && key < patterns[0].columns ? weight(patterns[0], query, key) : NaN;
    if (!Number.isNaN(value)) [sum, seen] = [sum + value, true];
  }
  return seen ? sum / (queries[1] - queries[0]) : NaN;
}

// the tokens on the other side of one in the first head, the strongest first: { index, value }
function strongestOf(token) {
  const here = [token.index, endOf(token)];
  const others = labelsOf(SIDES[across(token.side)]).map((_, index) => {
    const there = [index, index + 1];
    return { index, value: token.side === "k" ? weightOf(there, here) : weightOf(here, there) };
  });
  return others.filter((other) => shown(other.value)).sort((a, b) => b.value - a.value);
}
