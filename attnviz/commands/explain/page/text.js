// The sentence: where it is typed, its tokens below, and in words what the chosen one attends to.

// the text, or where it cannot be typed those that the page holds
function makeInput() {
  const input = byId("text"), typed = engine.typed;
  if (!typed) document.querySelector("#typing label").textContent = "The text:";
  input.readOnly = !typed;
  byId("fixed").hidden = typed;
  byId("fixed").textContent = data.why || "";
  input.value = state.text;
  byId("examples").hidden = examples.length < 2;
  byId("examples").replaceChildren(typed ? "or try " : "", ...examples.map(({ text }, index) => made("button", { type: "button", "data-example": index, dir: "auto" }, text)));
}

function listenToInput() {
  byId("text").addEventListener("input", ({ target }) => {
    state.text = target.value;
    refresh();
  });
  byId("examples").addEventListener("click", ({ target }) => {
    const example = examples[target.dataset.example];
    if (!example) return;
    const { text, layer = state.layer, head = state.head, query = state.query } = example;
    Object.assign(state, { text, layer, head, query, key: null, wanted: null, removed: [], auto: true });
    byId("text").value = example.text;
    refresh();
  });
}

// a button for each token: of one text, or of the one that asks and the one that answers
function drawTokens() {
  byId("read").hidden = isSelf();
  byId("written").replaceChildren(...chips("q"));
  byId("read").replaceChildren(...(isSelf() ? [] : chips("k")));
  const known = [unknownWords(), piecesOfWords()].filter(Boolean).join(" ");
  byId("count").textContent = [isSelf() ? amount(run.queries.length, "token") : "", known].filter(Boolean).join(". ");
}

const MOST_LETTERS = 24, MOST_PIECES = 8; // of a word that is told
const MOST_UNKNOWN = 8; // words

const keysText = () => engine.about.kind === "decoder" ? run.target : run.text;

function shortened(text) {
  const short = [...text].slice(0, MOST_LETTERS).join("");
  return `“${short}${short === text ? "" : "…"}”`;
}

// as the note that commands write
function unknownWords() {
  const words = run.unknown || [], more = words.length - MOST_UNKNOWN;
  return words.length ? `The model was not trained on these words and cannot translate them: ${words.slice(0, MOST_UNKNOWN).map(shortened).join(", ")}${more > 0 ? ` and ${more} more` : ""}.` : "";
}

// Not in the vocabulary, so read in pieces: “flurble” (fl, ur, ble).
function piecesOfWords() {
  const words = new Map();
  for (let at = 0; at < run.keys.length; at += run.keys[at].of || 1) {
    const pieces = run.keys.slice(at, at + (run.keys[at].of || 1)), text = keysText().slice(pieces[0].start, pieces.at(-1).end).trim();
    if (pieces.length < 2 || !/\p{L}/u.test(text)) continue;
    const labels = pieces.map(({ label }) => label.replace(/#\d+$/, ""));
    const few = labels.length <= MOST_PIECES && !labels.some((label) => / \d\/\d$/.test(label)); // no parts of a letter
    words.set(text, `${shortened(text)} (${few ? labels.join(", ") : amount(labels.length, "piece")})`);
  }
  const told = [...words.values()].slice(0, 2), more = words.size - told.length;
  return told.length ? `Not in the vocabulary, so read in pieces: ${told.join(", ")}${more ? ` and ${amount(more, "more word")}` : ""}.` : "";
}

function chips(side) {
  const part = isSelf() ? [] : [made("small", {}, side === "q" ? "asks:" : "answers:")];
  return [...part, ...run[SIDES[side]].map((token, index) => made("button", { type: "button", class: token.special ? "special" : null, "data-side": side, "data-index": index, tabindex: -1, dir: "auto" }, token.label))];
}

// how strong a colour stands behind letters, and whether these have to be light on it
function shadeOf(node, value) {
  const color = colorOf(value), light = color[0] * 0.299 + color[1] * 0.587 + color[2] * 0.114 > 110;
  node.style.background = `rgb(${color.join(" ")})`;
  node.style.color = light ? "#111" : "#fff";
}

function shadeTokens() {
  const weights = weightsOf(state.layer, state.head, spot.query);
  for (const chip of document.querySelectorAll("#tokens [data-side]")) {
    const index = Number(chip.dataset.index), asks = chip.dataset.side === "q", answers = isSelf() || !asks;
    const chosen = asks && index === spot.query, masked = answers && isMasked(spot.query, index);
    chip.classList.toggle("on", chosen);
    chip.classList.toggle("other", answers && index === spot.key);
    chip.classList.toggle("masked", masked);
    chip.style.background = chip.style.color = "";
    if (answers && !masked) shadeOf(chip, weights[index]);
    chip.tabIndex = (asks ? index === state.query : index === spot.key) ? 0 : -1;
    if (asks) chip.setAttribute("aria-pressed", String(index === state.query));
    chip.setAttribute("aria-label", `${chip.textContent}${masked ? ", masked" : answers ? `, weight ${share(weights[index])}` : ""}${chosen ? ", asks" : ""}`);
  }
}

// many tokens scroll in a box, in which the one that asks has to be seen
function showInTokens() {
  const box = byId("written"), chip = box.querySelector(".on");
  if (!chip || box.matches(":hover")) return;
  const [inner, outer] = [chip.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - (box.clientWidth - inner.width) / 2;
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - (box.clientHeight - inner.height) / 2;
}

// of a pronoun behind “because”: the last word of the clause, which can tell whom the pronoun means
function ending() {
  const stop = run.queries.findIndex(({ label }, at) => at > spot.query && /^[.,;:!?]/.test(label)), last = (stop < 0 ? run.queries.length : stop) - 1;
  const [first] = strongest(last), isWhole = run.queries[last].start > run.queries[last - 1]?.end, tells = first.key > 0 && first.key !== last && first.value >= TELLING;
  const reason = last > spot.query && /^because(#|$)/i.test(run.queries[spot.query - 1]?.label);
  return reason && isWhole && tells ? sentence` The row of ${word(run.queries[last].label)} knows the ending, and attends most to ${word(keyLabel(first.key))} (${percent(first.value)}).`.childNodes : [];
}

// “creature attends most to fluffy (51%) and blue (35%).”
function tell() {
  const asks = word(queryLabel()), told = strongest(spot.query).filter(({ value }) => value >= TELLING).slice(0, 3);
  const keys = told.map(({ key, value }) => [key === spot.query && isSelf() ? "itself" : word(keyLabel(key)), ` (${percent(value)})`]);
  const [first] = told, sunk = first && isSelf() && first.key === 0 && first.value > 0.5 && spot.query > 0;
  const said = keys.length ? sentence`In head ${headName()}, ${asks} attends most to ${listed(keys)}.` : sentence`In head ${headName()}, ${asks} spreads its ${term("weight", "attention")} thinly: no key has 10%.`;
  if (sunk) said.append(" Attention that no word needs rests there: it is a ", term("sink"), ".");
  const refers = engine.about.causal && isSelf() && spot.query + 1 < run.queries.length && PRONOUNS.some((kind) => is(kind, spot.query, QUERY));
  if (refers) said.append(" ", ...sentence`This model reads from left to right: the row of ${asks.cloneNode(true)} knows only the words before it, so no ending changes it.`.childNodes, ...ending());
  byId("told").replaceChildren(...said.childNodes);
}

function listenToTokens() {
  const box = byId("tokens"), chipOf = ({ target }) => target.closest("[data-side]");
  const placeOf = ({ dataset: { side, index } }) => side === "q" ? { query: Number(index), key: null } : { query: state.query, key: Number(index) };
  const point = (event) => { const chip = chipOf(event); if (chip) aim(placeOf(chip)); };
  box.addEventListener("pointerover", point);
  box.addEventListener("focusin", point);
  box.addEventListener("pointerleave", () => aim(null));
  box.addEventListener("focusout", () => aim(null));
  box.addEventListener("click", (event) => { const chip = chipOf(event); if (chip) pin(placeOf(chip)); });
  box.addEventListener("keydown", (event) => {
    const chip = chipOf(event), step = STEPS[event.key];
    if (!chip || !step) return;
    event.preventDefault();
    const next = step[0] + step[1] > 0 ? chip.nextElementSibling : chip.previousElementSibling;
    if (!next || !next.dataset.side) return;
    pin(placeOf(next)); // what the arrows reach is chosen
    next.focus();
  });
}
