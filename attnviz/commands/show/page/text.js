// The text itself, in which a word is coloured by the attention to the one that all views show.

let drawnUnit = null; // of the text as it was drawn

function drawText() {
  drawnUnit = state.unit;
  for (const [side, id] of [["queries", "words-of-queries"], ["keys", "words-of-keys"]]) {
    const box = byId(id);
    box.hidden = side === "queries" && !data.cross;
    box.replaceChildren();
    if (box.hidden) continue;
    const { text, spans, special, units, labels, together, shown: [begin, last] } = data[side], merged = state.unit !== "tokens";
    let end = begin, into = box, within = null; // the part that words go into
    (together || units[merged ? state.unit : "chars"].groups).forEach(([first, after, name], index) => {
      const [start, stop] = [Math.max(spans[first][0], end), spans[after - 1][1]];
      const part = special[first] ? within : partAt(side, start + text.slice(start, stop).search(/\S|$/));
      const begins = part !== within;
      if (begins) {
        within = part;
        into = part === null ? box : partBox(box, side, part);
        if (!text.slice(end, start).trim()) end = start; // blanks between parts
      }
      if (!special[first] && start > end) into.append(readable(text.slice(end, start)));
      let said = name || special[first] ? name || labels[first] : readable(text.slice(start, stop));
      if (!said) return; // a mark that a word begins
      if (begins && part !== null) said = said.trimStart() || "⏎ "; // no blank line at the top of a part
      const word = document.createElement("span");
      word.dataset.side = side === "queries" ? "q" : "k";
      word.dataset.index = merged ? index : first;
      word.dataset.after = merged ? index + 1 : after; // pieces of one letter stand together
      word.textContent = said;
      if (name) word.dataset.name = name;
      if (special[first]) word.dir = "ltr"; // no letters of the text, whose direction they do not set
      word.tabIndex = box.querySelector("span") ? -1 : 0; // one stop, from which arrows go on
      into.append(word, special[first] ? " " : "");
      if (into !== box) stretch(into.firstChild, word);
      if (!special[first] || stop > start) end = Math.max(end, stop); // the mark of an image
    });
    if (last > end) into.append(readable(text.slice(end, last)));
  }
}

// the part of a place in a text: that which began last before it; null where there are none
function partAt(side, place) {
  const parts = data.parts[side];
  if (!parts.length || (side === "keys" && place >= data.queries.shown[0])) return null;
  return Math.max(0, parts.findLastIndex(([, start]) => start <= place));
}

// a part of the text with its name, which stands for all of its words, and a margin in its colour
function partBox(box, side, part) {
  const made = document.createElement("div"), name = document.createElement("small");
  const names = [...new Set(data.parts[side].map(([name]) => name))];
  made.className = "segment";
  if (side === "keys") made.style.borderColor = COLORS[names.indexOf(data.parts[side][part][0]) % COLORS.length];
  name.textContent = data.parts[side][part][0];
  name.tabIndex = 0;
  made.append(name);
  box.append(made);
  return made;
}

function stretch(name, word) {
  name.dataset.side = word.dataset.side;
  name.dataset.index ??= word.dataset.index;
  name.dataset.after = word.dataset.after;
}

// marks that would turn the order of what follows are written out
const readable = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (mark) => "\\u" + mark.charCodeAt(0).toString(16));

function shade() {
  const token = spot && spot.token;
  const back = token && token.side === "k", here = token && [token.index, endOf(token)];
  for (const word of document.querySelectorAll("#text span")) {
    const index = Number(word.dataset.index), side = word.dataset.side, there = [index, Number(word.dataset.after)];
    const opposite = data.cross ? token && side !== token.side : true;
    word.classList.toggle("on", Boolean(token && (side === token.side || !data.cross) && holds(token, index)));
    word.classList.toggle("other", Boolean(token && opposite && spot.other !== null && index <= spot.other && spot.other < there[1]));
    word.style.background = "";
    if (!token || !patterns.length) continue;
    const value = back ? weightOf(there, here) : weightOf(here, there);
    if (opposite && shown(value)) word.style.background = `rgb(234 88 12 / ${Math.min(1, value / full()).toFixed(3)})`;
  }
}

// `creature → blue 0.69, fluffy 0.30`: the strongest in words, for those who do not see colours
function inWords(token) {
  const back = token.side === "k", names = labelsOf(SIDES[across(token.side)]);
  const strongest = strongestOf(token).filter((other) => other.value >= 0.005); // no 0.00
  const told = strongest.slice(0, 3).map((other) => `${quoted(names[other.index])} ${other.value.toFixed(2)}`).join(", ");
  return `${quoted(tokenName(token))} ${back ? "←" : "→"} ${told || "nothing"}`;
}

// beside a number, what is no word is quoted
const quoted = (label) => /\p{L}/u.test(label) ? label : `“${label}”`;

// of a part, and of an image, its own; of pieces of a letter the first one's
function tokenName(token) {
  const named = [...document.querySelectorAll("#text small, #text [data-name]")];
  const part = named.find((each) => same(data.cross ? tokenOf(each) : { ...tokenOf(each), side: token.side }, token));
  return part ? part.textContent : labelsOf(SIDES[token.side])[token.index];
}

// a word of a text that attends to itself is a query, or a key where it is asked what attends to it
function wordOf(target) {
  const token = tokenOf(target);
  return token && !data.cross ? { ...token, side: state.from ? "k" : "q" } : token;
}

function showDirection() {
  for (const choice of document.getElementsByName("direction")) choice.checked = (choice.value === "from") === state.from;
}

// a long text is read in a box, in which the word has to be seen; of two texts each has its own
function showInText() {
  const word = document.querySelector("#read span.on"), source = strongestWord();
  for (const shown of [word, source]) {
    const box = shown && shown.closest("#read > div");
    if (!box || box.matches(":hover")) continue;
    const [inner, outer] = [shown.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - box.clientHeight / 2;
  }
}

// in the other text, the word that is named, or else the one with the strongest link
function strongestWord() {
  if (!data.cross || !spot) return null;
  const named = document.querySelector("#read span.other");
  if (named) return named;
  const words = [...document.querySelectorAll("#read span")].filter((word) => word.dataset.side !== spot.token.side);
  const found = strongestOf(spot.token).map(({ index }) => words.find((word) => index < Number(word.dataset.after)));
  return found.find((word) => word && !word.dir) || null; // only special tokens, which are no source, have a direction
}

function listenToText() {
  const box = byId("read");
  const aimAt = (target) => {
    const token = wordOf(target);
    if (token) aim({ token, other: null });
  };
  box.addEventListener("pointerover", (event) => aimAt(event.target));
  box.addEventListener("pointerleave", () => aim(null));
  box.addEventListener("focusin", (event) => aimAt(event.target));
  box.addEventListener("focusout", () => aim(null));
  box.addEventListener("click", (event) => {
    const token = wordOf(event.target);
    if (token) pin(token);
  });
  box.addEventListener("keydown", (event) => {
    const token = wordOf(event.target), step = STEPS[event.key];
    if (!token) return;
    if (event.key === "Enter" || event.key === " ") pin(token);
    else if (event.key === "Escape") pin(null);
    else if (step) {
      const next = step[0] + step[1] > 0 ? event.target.nextElementSibling : event.target.previousElementSibling;
      if (next) {
        [event.target.tabIndex, next.tabIndex] = [-1, 0];
        next.focus();
      }
    } else return;
    event.preventDefault();
  });
  for (const choice of document.getElementsByName("direction")) choice.addEventListener("change", () => {
    state.from = choice.value === "from" && choice.checked;
    if (state.pin) state.pin = { ...state.pin, side: state.from ? "k" : "q" };
    state.other = null;
    writeFragment();
    drawFocus();
  });
}
