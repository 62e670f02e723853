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
  if (classes.includes(word) || !(data.links.adjectives?.[run.queries[query].id] & 1)) return false; // no noun
  const near = earlier.slice(-BETWEEN).reverse(), end = near.findIndex((label) => BREAKS.test(label));
  return near.slice(0, end < 0 ? BETWEEN : end).some((label) => classes.includes(label));
}

function readings(x, added) {
  const { readouts } = data, title = made("h4", {}, "What ", term("read-out", "read-outs"), " find in these vectors");
  if (!readouts.length) return [title, aside("This model has no read-outs, so nothing says here what its vectors mean.")];
  const here = readouts.flatMap((readout) => readout.heads.filter(({ layer, head }) => layer === state.layer && head === state.head).map((at) => ({ readout, at })));
  if (!here.length) return [title, aside(`None was trained for what ${headName()} adds: it carries too little of what this model’s read-outs are for (${readouts.map(({ name }) => name).join(", ")}).`)];
  const found = here.filter(({ readout }) => isFor(readout, spot.query));
  if (!found.length) return [title, made("p", { class: "hint" }, "None applies to ", word(queryLabel()), ` on this text. Those of ${headName()} read ${here.map(({ readout }) => purpose(readout)).join("; ")}.`)];
  const rows = found.map(({ readout, at }) => readingOf(readout, at, [x, added, plus(x, added)]));
  const heads = ["", "in the token alone", `before ${headName()}`, `in what ${headName()} adds`, `after ${headName()}`];
  return [
    title,
    ...rows.map(({ said }) => said),
    made("table", {}, made("thead", {}, made("tr", {}, ...heads.map((head) => made("th", { scope: "col" }, head)))), made("tbody", {}, ...rows.map(({ cells }) => cells))),
    made("p", { class: "hint" }, `right: the share of ${readouts[0].n} held-out words on which the read-out is right; `, term("chance"), ": the share that guessing reaches; unsure: no answer has half of the probability."),
  ];
}

// what a read-out is for: `the colour of a noun that follows one such as “black”`
function purpose({ name, queries, classes }) {
  const [word] = queries.filter((each) => ["he", "bank"].includes(each)).concat(queries);
  return `the ${name} of ${word ? `a word such as “${word}”` : `a noun that follows one such as “${classes[0]}”`}`;
}

// the row of a read-out, and its result in a sentence
function readingOf({ name, classes, chance, token }, { maps, right }, vectors) {
  const nothing = (often) => often <= chance + NEAR_CHANCE, said = (read) => read.said === "none" ? `no ${name}` : read.said;
  const cell = (told, often) => made("td", {}, ...nothing(often) ? [`cannot be told (right ${share(often)}, chance ${share(chance)})`] : [bare(told), ` (right ${share(often)})`]);
  const reads = vectors.map((vector, moment) => readOut(maps, moment, vector, classes));
  const [before, adds, after] = reads.map((read, moment) => nothing(right[moment]) || read.probability < SURE ? null : said(read));
  const quoted = (told, none = "none") => told === `no ${name}` ? none : word(told), early = before === null ? "" : [" Before it, ", quoted(before), " was."];
  const result = adds !== null && adds !== after ? [`what ${headName()} adds reads as `, quoted(adds, adds), "; after it, the stream does not."]
    : after === null ? ["it is not readable after this head."]
    : before === after ? [quoted(after), " was already readable before this head."]
    : [quoted(after), adds === after ? ` becomes readable with what ${headName()} adds.` : " is readable after this head.", early];
  return {
    cells: made("tr", {}, made("th", { scope: "row" }, name), cell("", token), ...reads.map((read, moment) => cell(read.probability < SURE ? "unsure" : said(read), right[moment]))),
    said: sentence`${made("b", {}, name)}: ${result.flat()}`,
  };
}
