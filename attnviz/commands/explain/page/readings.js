// What linear maps read out of the vectors around a head: before it, in what it adds, and after it.

const SURE = 0.5; // the least probability of what is told
const NEAR_CHANCE = 0.05; // a map that is right no oftener than this above chance reads nothing
const BETWEEN = 4; // tokens between a noun and an adjective of it, at most
const BREAKS = /^(?:[.,;:!?]|the|a|an|of|in|on|at|by|with|to|is|was|are|were|that|who|which)$/;

// the maps of each read-out's heads (3, d + 1, classes), the bias in the last row
async function openMaps() {
  if (!data.readouts.length) return;
  const planes = await inflated(byId("maps").textContent), n = planes.length / 4, bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane++) for (let i = 0; i < n; i++) bytes[4 * i + 3 - plane] = planes[plane * n + i]; // the highest bytes come first
  const numbers = new Float32Array(bytes.buffer);
  let at = 0;
  for (const { heads, classes } of data.readouts) for (const head of heads) {
    const length = 3 * (engine.about.d_model + 1) * classes.length;
    head.maps = numbers.subarray(at, at += length);
  }
}

// the likeliest class of a vector and its probability, as records/meaning.py has it
function readOut(maps, moment, vector, classes) {
  const start = moment * (vector.length + 1) * classes.length, row = (i) => start + i * classes.length;
  const logits = classes.map((_, j) => vector.reduce((sum, value, i) => sum + value * maps[row(i) + j], maps[row(vector.length) + j]));
  const most = Math.max(...logits), powers = logits.map((logit) => Math.exp(logit - most));
  return { said: classes[logits.indexOf(most)], probability: 1 / powers.reduce((sum, power) => sum + power, 0) };
}

// Whether a read-out is for such a word: one of its list, after one of its classes where these are
// names; or a noun, as it seems, with one of its classes a little before it.
function isFor({ name, queries, classes }, query) {
  const bare = (token) => token.label.replace(/#\d+$/, ""), word = bare(run.queries[query]), earlier = run.queries.slice(0, query).map(bare);
  if (name === "sense") return queries.includes(word.toLowerCase());
  if (queries.length) return queries.includes(word.toLowerCase()) && earlier.some((label) => classes.includes(label));
  if (!/^\p{L}{2,}$/u.test(word) || classes.includes(word)) return false;
  const near = earlier.slice(-BETWEEN).reverse(), end = near.findIndex((label) => BREAKS.test(label));
  return near.slice(0, end < 0 ? BETWEEN : end).some((label) => classes.includes(label));
}

function readings(x, added) {
  const rows = data.readouts.filter((readout) => isFor(readout, spot.query)).flatMap((readout) => {
    const here = readout.heads.find(({ layer, head }) => layer === state.layer && head === state.head);
    return here ? [readingOf(readout, here, [x, added, plus(x, added)])] : [];
  });
  if (!rows.length) return [];
  const heads = ["", "in the token alone", `before ${headName()}`, `${headName()} adds`, `after ${headName()}`];
  return [
    made("h4", {}, "What can be read out of these vectors"),
    made("table", {}, made("thead", {}, made("tr", {}, ...heads.map((head) => made("th", { scope: "col" }, head)))), made("tbody", {}, ...rows)),
    aside(`Linear maps, made for words such as this one; in brackets, how often each is right on ${data.readouts[0].n} held-out words.`),
  ];
}

function readingOf({ name, classes, chance, token }, { maps, right }, vectors) {
  const cell = (said, often) => made("td", {}, bare(said), ` (${share(often)})`), nothing = (often) => often <= chance + NEAR_CHANCE;
  const cells = vectors.map((vector, moment) => {
    const { said, probability } = readOut(maps, moment, vector, classes), told = said === "none" ? `no ${name}` : said;
    return cell(nothing(right[moment]) ? "nothing" : probability < SURE ? "unsure" : told, right[moment]);
  });
  return made("tr", {}, made("th", { scope: "row" }, `${name} (chance ${share(chance)})`), cell(nothing(token) ? "nothing" : "", token), ...cells);
}
