// What was found of one head: its scores, histograms and tokens.

const SIDES = [
  ["key", "Key tokens: what it attends to"],
  ["query", "Query tokens: what attends"],
  ["pair", "Pairs: query → key"],
];
const HISTOGRAMS = {
  distance: ["Distance to the key, in tokens", "mean weight of a query, over documents"],
  position: ["Position of the key in the window", "mean weight of a query, over documents"],
  largest: ["Largest weight of a window", "windows"],
};

function drawHead(found) {
  byId("head-title").textContent = headTitle(state.head);
  drawScores(state.head);
  byId("histograms").replaceChildren(...Object.keys(HISTOGRAMS).map((name) => histogram(name, found.histograms[name] || [])));
  drawTokens(found);
  drawExamples(found);
}

// what holds of the scores of all heads: where this one is first, or last
function headTitle(head) {
  const extremes = measured.flatMap(({ name, label }) => {
    const own = valueOf(name, head), others = heads.filter(({ index }) => index !== head && valueOf(name, index) !== null);
    if (own === null || !others.length) return [];
    if (others.every(({ index }) => valueOf(name, index) < own)) return [`highest ${label}`];
    return others.every(({ index }) => valueOf(name, index) > own) ? [`lowest ${label}`] : [];
  });
  const all = `of all ${count(heads.length, "head")}`;
  return heads[head].name + (extremes.length ? `: ${extremes.join(", ")} ${all}` : "");
}

// ---- scores ----

function drawScores(head) {
  const rows = measured.map((score) => {
    const [value, error, documents] = data.values[score.name][head], name = make("th", "", score.label);
    name.scope = "row";
    const bar = make("i", "bar");
    bar.style.width = `${(value ?? 0) / largestOf(score.name) * 100}%`;
    const some = value !== null && documents !== data.documents ? ` (in ${count(documents, "document")})` : "";
    const row = make("tr", "", name,
      make("td", "number", value === null ? "–" : grouped(value, score.digits)),
      make("td", "number", value === null || error === null ? "" : `± ${grouped(error, score.digits)}`),
      make("td", "share", make("span", "track", bar)),
      make("td", "rank", value === null ? "not measured" : ordinal(rankOf(score.name, head))),
      make("td", "says", score.says + (score.unit && ` (${score.unit})`) + some));
    row.dataset.score = score.name;
    return row;
  });
  const errors = data.over === "documents"; // means over tokens have none
  const names = ["score", "mean", errors ? "error" : "", "", "rank", ""].map((name) => make("th", "", name));
  names[1].className = names[2].className = "number";
  names[3].textContent = "0 to the largest";
  names[4].textContent = `rank of ${heads.length.toLocaleString("en")}`;
  names[5].textContent = "what it measures";
  byId("scores").replaceChildren(make("thead", "", make("tr", "", ...names)), make("tbody", "", ...rows));
}

// ---- histograms ----

const TALL = 92, WIDE = 250, FOOT = 16;

function histogram(name, bins) {
  const [title, unit] = HISTOGRAMS[name], box = make("figure", "histogram", make("h4", "", title));
  box.dataset.histogram = name;
  // bins that double reach further than any window: what is empty at the end is left out
  const last = name === "largest" ? bins.length - 1 : bins.findLastIndex(([, , value]) => value);
  const shown = bins.slice(0, last + 1), most = Math.max(...shown.map(([, , value]) => value ?? 0), 0);
  if (!most) {
    box.append(make("p", "hint", "The scan has nothing to show here."));
    return box;
  }
  const svg = element("svg", { viewBox: `0 0 ${WIDE} ${TALL + FOOT}`, role: "img", "aria-label": `${title}: ${unit}, most in ${rangeOfBin(name, shown.reduce((a, b) => (b[2] > a[2] ? b : a)))}` });
  const wide = WIDE / shown.length, every = Math.ceil(30 / wide);
  shown.forEach((bin, i) => {
    const high = (bin[2] ?? 0) / most * (TALL - 14), bar = element("g", {});
    const value = name === "largest" ? count(bin[2] ?? 0, "window") : `${grouped(bin[2] ?? 0, 3)} ${unit}`;
    bar.append(
      element("rect", { x: i * wide, y: 0, width: wide, height: TALL, class: "behind" }),
      element("rect", { x: i * wide + 0.5, y: TALL - high, width: Math.max(1, wide - 1), height: high, class: "column" }),
      element("title", {}, `${rangeOfBin(name, bin)}: ${value}`));
    svg.append(bar);
    const mark = name === "largest" ? (i % 10 ? "" : String(bin[0])) : i % every ? "" : String(bin[0]);
    const at = name === "largest" ? i * wide : (i + 0.5) * wide;
    if (mark) svg.append(element("text", { x: at, y: TALL + 12, "text-anchor": i || name !== "largest" ? "middle" : "start" }, mark));
  });
  if (name === "largest") svg.append(element("text", { x: WIDE, y: TALL + 12, "text-anchor": "end" }, "1"));
  svg.append(element("line", { x1: 0, x2: WIDE, y1: TALL, y2: TALL, class: "rule" }));
  box.append(svg, make("figcaption", "hint", `up: ${unit}; the highest bar is ${name === "largest" ? count(most, "window") : grouped(most, 3)}`));
  return box;
}

function rangeOfBin(name, [start, end]) {
  if (name === "largest") return `${start.toFixed(2)} to ${end.toFixed(2)}`;
  if (end === null) return `${start.toLocaleString("en")} and more`;
  return end - start > 1 ? `${start.toLocaleString("en")} to ${(end - 1).toLocaleString("en")}` : String(start);
}

// ---- tokens ----

const FIRST = 12;

function drawTokens({ tokens, sampled }) {
  const some = SIDES.some(([side]) => (tokens[side] || []).length);
  byId("sampled").textContent = some
    ? `Sums of weights over ${count(sampled, "sampled window")}, without the first token of each and what a token attends to itself; the 8 strongest keys of each query count. Click a token to find the other heads that attend to it.`
    : data.later || "The scan counted no tokens of this head.";
  byId("tokens").replaceChildren(...(some ? SIDES.map(([side, title]) => tokenList(side, title, tokens[side] || [])) : []));
}

function tokenList(side, title, found) {
  const box = make("div", "masses", make("h4", "", title)), list = make("ol");
  const most = Math.max(...found.map(([, , mass]) => mass), 0) || 1;
  const item = ([query, key, mass]) => {
    const names = [query, key].filter((token) => token !== null), inner = names.flatMap((token, i) => (i ? [" → ", tokenName(token)] : [tokenName(token)]));
    return massItem(inner, mass, most, () => search(key ?? query));
  };
  list.append(...found.slice(0, FIRST).map(item));
  box.dataset.side = side;
  box.append(found.length ? list : make("p", "hint", "None."));
  if (found.length > FIRST) box.append(more(`all ${found.length}`, () => list.append(...found.slice(FIRST).map(item))));
  return box;
}

// a button in a list, with a bar behind it and a number
function massItem(content, mass, most, act) {
  const button = make("button", "mass", make("span", "what", ...content), make("span", "number", brief(mass))), bar = make("i", "bar");
  button.type = "button";
  bar.style.width = `${mass / most * 100}%`;
  button.prepend(bar);
  button.addEventListener("click", act);
  return make("li", "", button);
}

function more(label, act) {
  const button = make("button", "more", label);
  button.type = "button";
  button.addEventListener("click", () => { act(); button.remove(); });
  return button;
}
