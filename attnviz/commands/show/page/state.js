// The state of the page, and its way into the address's fragment and back.

// Okabe and Ito 2008, then Tol 2021 (muted): told apart by colour-blind eyes, on light and on dark
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#88ccee", "#44aa99", "#999933", "#aa4499", "#cc6677", "#ddcc77"];
const DIGITS = data.bytes === 2 ? 4 : 3; // no more than the weights have
const SIDES = { q: "queries", k: "keys" };

const initial = { turn: false, from: false, theme: "", other: null, ...data.initial };
const state = { ...initial, ...readFragment() };
let patterns = []; // of the chosen heads: { name, color, rows, columns, values }

// A token may be several, up to and without `after`: pieces of a letter, a sentence, a segment.
// `other` is the one on the other side that it is looked at with; null is the strongest.
let aimed = null; // { token, other }: what the pointer or the keys are at
let spot = null; // the same, of what all views show: what is aimed at, else what is pinned
const followers = []; // what else shows it

function findSpot() {
  const at = aimed || (state.pin && { token: state.pin, other: state.other });
  if (!at || at.other !== null) return at;
  const [strongest] = strongestOf(at.token);
  return { token: at.token, other: strongest ? strongest.index : null };
}

const endOf = (token) => Math.max(token.index + 1, token.after || 0);
const holds = (token, index) => index >= token.index && index < endOf(token);

function readFragment() {
  const found = {}, given = new URLSearchParams(location.hash.slice(1));
  if (!location.hash) return found;
  // a link says all of it
  Object.assign(found, { sink: false, unit: "tokens", threshold: 0, pin: null, other: null });
  const heads = (given.get("h") || "").split(",").map((name) => data.heads.findIndex((h) => h.label === name));
  if (heads.length && heads.every((head) => head >= 0)) found.heads = [...new Set(heads)];
  if (given.has("t")) found.threshold = Math.min(1, Math.max(0, Number(given.get("t")) || 0));
  for (const name of ["sink", "turn", "from"]) if (given.get(name) === "1") found[name] = true;
  for (const name of ["words", "chars"]) if (given.get(name) === "1") found.unit = name;
  const pin = /^([qk])(\d+)(?:-(\d+))?$/.exec(given.get("pin") || "");
  if (pin) found.pin = { side: pin[1], index: Number(pin[2]), ...(pin[3] && { after: Number(pin[3]) }) };
  if (pin && /^\d+$/.test(given.get("to") || "")) found.other = Number(given.get("to"));
  if (["light", "dark"].includes(given.get("theme"))) found.theme = given.get("theme");
  return found;
}

function writeFragment() {
  const kept = new URLSearchParams();
  kept.set("h", state.heads.map((head) => data.heads[head].label).join(","));
  if (state.threshold) kept.set("t", String(state.threshold));
  if (state.unit !== "tokens") kept.set(state.unit, "1");
  for (const name of ["sink", "turn", "from"]) if (state[name]) kept.set(name, "1");
  if (state.pin) kept.set("pin", state.pin.side + state.pin.index + (endOf(state.pin) > state.pin.index + 1 ? "-" + endOf(state.pin) : ""));
  if (state.pin && state.other !== null) kept.set("to", String(state.other));
  if (state.theme) kept.set("theme", state.theme);
  const fragment = "#" + kept.toString().replaceAll("%2C", ",");
  if (fragment === location.hash) return;
  try {
    history.replaceState(null, "", fragment);
  } catch { /* a frame in a notebook has no address of its own */ }
}

// a pin that the page has no place for is none
function checkPin() {
  const many = (side) => labelsOf(SIDES[side]).length;
  if (state.pin && endOf(state.pin) > many(state.pin.side)) state.pin = null;
  if (!state.pin || state.other >= many(across(state.pin.side))) state.other = null;
}

// tokens are merged, or no longer: what was pinned stays, as far as it can
function changeUnit(unit) {
  const moved = (side, index) => {
    const [first] = groupsOf(SIDES[side])[index], was = state.unit;
    state.unit = unit;
    const there = groupsOf(SIDES[side]).findIndex(([start, after]) => start <= first && first < after);
    state.unit = was;
    return there;
  };
  if (state.pin && state.other !== null) state.other = moved(across(state.pin.side), state.other);
  if (state.pin) state.pin = { side: state.pin.side, index: moved(state.pin.side, state.pin.index) };
  state.unit = unit;
}
