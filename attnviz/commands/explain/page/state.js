// The state of the lesson: a text, a head, a query and a key; and its way into the address's fragment and back.

const SIDES = { q: "queries", k: "keys" };
const DIGITS = 4; // of a weight that is pointed at
const TELLING = 0.095; // a link that reads .10, as in explain's first line; a weaker one is nothing to tell
const STANDS_OUT = 0.3; // the least weight of a link for which a query is picked
const MOST_KEYS = 24; // of a row, as explain writes them
const opening = { ...data.texts[0], ...data.start };

// `query` and `key` are positions; null: the last word, and the key with the most attention. `wanted` is the label of
// the query that was chosen, which is looked for in the next text. `turn` is for the heatmap, whose rows are queries;
// `auto`: the page picks the head that fits each text, until one is chosen.
const initial = { text: opening.text, layer: opening.layer, head: opening.head, query: opening.query, key: null, removed: [], temperature: 1, digits: 3, numbers: false, theme: "", turn: false, auto: opening.picked };
const state = { ...initial, wanted: null, ...readFragment() };
let engine = null; // what runs the model
let run = null; // what is shown
let before = null; // the same text with every head, where some are removed
let aimed = null; // { query, key }: what the pointer or the keys are at
const followers = []; // what else shows it
let spot = null; // what all views show: { query, key }, and the same as the heatmap reads it

const nameOf = ([layer, head]) => `L${layer}H${head}`;
const headName = () => nameOf([state.layer, state.head]);
const isRemoved = (layer, head) => state.removed.some(([l, h]) => l === layer && h === head);
const layerNow = () => run.layers[state.layer];
const isSelf = () => !["cross", "decoder"].includes(engine.about.kind);
const labelsOf = (side) => run[side].map((token) => token.label);
const queryLabel = () => run.queries[spot.query].label;
const keyLabel = (key) => run.keys[key].label;

// the numbers of one head, without a copy: of those of all heads, or of a list that may lack some
function ofHead(array, head) {
  if (Array.isArray(array)) return array[head];
  const length = array.length / engine.about.heads;
  return array.subarray(head * length, (head + 1) * length);
}
const rowOf = (array, head, row, rows) => vectorOf(ofHead(array, head), row, rows);
const vectorOf = (array, row, rows) => array.subarray(row * array.length / rows, (row + 1) * array.length / rows);
const weightsOf = (layer, head, query) => rowOf(run.layers[layer].pattern, head, query, run.queries.length);
const scoresOf = (query) => rowOf(layerNow().scores, state.head, query, run.queries.length);
const isMasked = (query, key) => maskOf(state.layer, state.head)(query, key);

// whether every number of the chosen head is there, and not only its weights
const isWhole = () => ofHead(layerNow().scores, state.head) !== undefined;

// which links a head may not have; while its scores are not there, by the order of the text
function maskOf(layer, head) {
  const scores = ofHead(run.layers[layer].scores, head), columns = run.keys.length;
  if (scores) return (query, key) => scores[query * columns + key] === -Infinity;
  return (query, key) => engine.about.causal && isSelf() && key > query;
}

// the keys that a query may attend to, the strongest first
function strongest(query, { layer, head } = state) {
  const weights = weightsOf(layer, head, query), isHidden = maskOf(layer, head);
  return run.keys.map((_, key) => ({ key, value: weights[key] })).filter(({ key }) => !isHidden(query, key)).sort((a, b) => b.value - a.value);
}

// those that steps show, in their order, and how many weaker ones they leave out
function seenKeys() {
  const allowed = strongest(spot.query), kept = allowed.slice(0, MOST_KEYS).map(({ key }) => key);
  return { keys: kept.sort((a, b) => a - b), left: allowed.length - kept.length };
}

// a query and a key; the heatmap reads the same as a token and the one on its other side
function findSpot() {
  const query = aimed ? aimed.query : state.query;
  let key = aimed ? aimed.key : state.key;
  if (key === null || key >= run.keys.length) key = strongest(query)[0].key;
  return { query, key, token: { side: "q", index: query }, other: key };
}

// the query in a new text: the token that was chosen, else the one with the strongest link to another word, else the last word
function placeQuery() {
  const labels = labelsOf("queries"), bare = (label) => label.replace(/#\d+$/, "");
  if (state.query < labels.length && (state.wanted === null || labels[state.query] === state.wanted)) return;
  const same = labels.findLastIndex((label) => bare(label) === bare(state.wanted ?? ""));
  const last = run.queries.findLastIndex((token) => !token.special && /[\p{L}\p{N}]/u.test(token.label));
  state.query = [same, tellingQuery(), last, labels.length - 1].find((query) => query >= 0);
  state.key = null;
}

// −1 where the head has no link to another word that stands out
function tellingQuery() {
  const isWord = ({ label, special }) => !special && /^\p{L}{2,}(#\d+)?$/u.test(label);
  let best = { query: -1, value: STANDS_OUT };
  for (const [query, token] of run.queries.entries()) if (isWord(token)) {
    const link = strongest(query).find(({ key }) => isWord(run.keys[key]) && !(isSelf() && key === query));
    if (link && link.value > best.value) best = { query, value: link.value };
  }
  return best.query;
}

function readFragment() {
  const found = {}, given = new URLSearchParams(location.hash.slice(1));
  if (given.has("text")) found.text = given.get("text");
  const head = /^L(\d+)H(\d+)$/.exec(given.get("h") || "");
  if (head) Object.assign(found, { layer: Number(head[1]), head: Number(head[2]), auto: given.get("by") === "page" });
  for (const [name, short] of [["query", "q"], ["key", "k"]]) if (/^\d+$/.test(given.get(short) || "")) found[name] = Number(given.get(short));
  found.removed = [...(given.get("without") || "").matchAll(/L(\d+)H(\d+)/g)].map(([, layer, number]) => [Number(layer), Number(number)]);
  if (["light", "dark"].includes(given.get("theme"))) found.theme = given.get("theme");
  return found;
}

function writeFragment() {
  const kept = new URLSearchParams();
  if (state.text !== opening.text) kept.set("text", state.text);
  kept.set("h", headName());
  if (state.auto) kept.set("by", "page");
  kept.set("q", String(state.query));
  if (state.key !== null) kept.set("k", String(state.key));
  if (state.removed.length) kept.set("without", state.removed.map(nameOf).join());
  if (state.theme) kept.set("theme", state.theme);
  try {
    history.replaceState(null, "", "#" + kept.toString().replaceAll("%2C", ","));
  } catch { /* a frame in a notebook has no address of its own */ }
}
