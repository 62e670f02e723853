// What is shown, the scores, and small helpers. All state is in the address's fragment.

const heads = data.heads.map(([name, layer, number], index) => ({ name, layer, number, index }));
const scores = new Map(data.scores.map((score) => [score.name, score]));
const measured = data.scores.filter(({ name }) => data.values[name].some(([value]) => value !== null));
const named = new Map(heads.map((head) => [head.name, head.index]));
const initial = {
  head: data.start.head, x: data.start.x, y: data.start.y, color: data.start.score, find: "", from: false, theme: "",
};
const state = { ...initial, ...readFragment() };

function readFragment() {
  const found = {}, given = new URLSearchParams(location.hash.slice(1));
  if (named.has(given.get("h"))) found.head = named.get(given.get("h"));
  for (const name of ["x", "y", "color"]) if (scores.has(given.get(name))) found[name] = given.get(name);
  if (given.get("find")) found.find = given.get("find");
  if (given.get("from") === "1") found.from = true;
  if (["light", "dark"].includes(given.get("theme"))) found.theme = given.get("theme");
  return found;
}

function writeFragment() {
  const kept = new URLSearchParams({ h: heads[state.head].name });
  for (const name of ["x", "y", "color", "find", "theme"]) if (state[name] !== initial[name]) kept.set(name, state[name]);
  if (state.from) kept.set("from", "1");
  if (`#${kept}` === location.hash) return;
  try {
    history.replaceState(null, "", `#${kept}`);
  } catch { /* a frame has no address of its own */ }
}

const valueOf = (score, head) => data.values[score][head][0];
const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const largestOf = (score) => Math.max(...heads.map(({ index }) => valueOf(score, index) ?? 0)) || 1;

function written(score, value) {
  if (value === null) return "not measured";
  const { digits, unit } = scores.get(score);
  return grouped(value, digits) + (unit && ` ${unit}`);
}

function grouped(value, digits) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// a value of any size with three digits
const brief = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });

// how many heads have a larger value, and one
function rankOf(score, head) {
  const own = valueOf(score, head);
  return 1 + heads.filter(({ index }) => valueOf(score, index) !== null && valueOf(score, index) > own).length;
}

const ordinal = (n) => `${n}${[11, 12, 13].includes(n % 100) ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th"}`;

// an element of the page: its class, and what is in it
function make(tag, kind, ...content) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...content);
  return made;
}

// a token that stands alone: the space that it begins with is drawn, and no letters turn round others
function tokenName(token) {
  const name = make("bdi", "token");
  if (token.startsWith(" ")) name.append(make("i", "space", "␣"));
  name.append(token.trimStart() || "(empty)");
  return name;
}
