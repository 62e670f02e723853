// The lesson: runs the text, and keeps all views of it in step.

let runs = 0; // how many were asked for; only the last one counts
let whole = null; // the last run with every head

async function runText(mine) {
  if (!whole || whole.text !== state.text) {
    const found = await engine.run(state.text, { removed: [] });
    if (mine !== runs || !found) return null;
    whole = found;
  }
  return state.removed.length ? engine.run(state.text, { removed: state.removed }) : whole;
}

async function refresh() {
  const mine = ++runs;
  let found = null, problem = "";
  try {
    found = await runText(mine);
  } catch (error) {
    problem = error.message;
  }
  if (mine !== runs) return; // another text or choice came in between
  tellProblem(problem);
  if (found) {
    [run, before] = [found, found === whole ? null : whole];
    drawRun();
  }
  document.body.dataset.ready = problem ? "problem" : state.text;
}

function tellProblem(problem) {
  byId("loading").hidden = true;
  byId("problem").textContent = problem;
  byId("problem").hidden = !problem;
  document.body.classList.toggle("stale", byId("next").inert = Boolean(problem)); // what is shown is of another text
}

// everything, as another text was run
function drawRun() {
  const told = headlines.find(({ text, layer, head }) => text === run.text && layer !== undefined && !isRemoved(layer, head));
  if (!data.live) offer(told ?? fitting()); // a server has its own
  placeQuery();
  state.wanted ??= run.queries[state.query].label;
  document.body.classList.remove("nothing"); // before anything is measured
  drawTokens();
  drawNext();
  drawHead();
  engine.soon(drawHeads);
}

// what changes with the head, once its weights are there
function drawHead() {
  const mine = run, { layer, head } = state, waits = engine.need(run, layer, head);
  if (waits) return waits.then((there) => { if (there && run === mine && state.layer === layer && state.head === head) drawHead(); });
  aimed = null;
  spot = findSpot();
  markHeads();
  drawPattern();
  drawSpot();
  writeFragment();
}

// What all views show of a query and a key. Of another key of the same query, no list is made anew,
// so that the pointer and the focus stay where they are.
function drawSpot({ keyOnly = false } = {}) {
  shadeTokens();
  showInTokens();
  tell();
  drawMap();
  say(toldOf(spot));
  if (!keyOnly) {
    drawRow();
    drawSteps();
  }
  if (isWhole()) drawProduct();
  for (const follow of followers) follow();
  markKeys();
}

function show(change) {
  const was = spot;
  change();
  spot = findSpot();
  if (was.query !== spot.query || was.key !== spot.key) drawSpot({ keyOnly: was.query === spot.query });
}

// the heatmap tells a token and the one on its other side, all else a query and a key
const placeAt = (at, other) => !at || "query" in at ? at : at.side === "q" ? { query: at.index, key: other ?? null } : { query: spot.query, key: at.index };

// the pointer or the keys are at a query and a key, for a while; null: no longer
function aim(at) {
  show(() => { aimed = at && at.token ? placeAt(at.token, at.other) : at; });
}

// what is chosen stays; null: the key with the most attention
function pin(at, other) {
  const place = placeAt(at, other) || { query: state.query, key: null };
  show(() => {
    aimed = null;
    Object.assign(state, place);
    state.wanted = run.queries[state.query].label;
  });
  shadeTokens();
  byId("claim").textContent = claim();
  writeFragment();
}

function redraw() {
  showTheme(state.theme);
  document.body.style.setProperty("--digits", state.digits);
  if (run) drawRun();
}

function listen() {
  byId("theme").addEventListener("click", () => {
    state.theme = otherTheme(state.theme);
    redraw();
  });
  byId("digits").addEventListener("input", ({ target }) => {
    state.digits = Math.max(0, Math.min(9, Math.round(Number(target.value)) || 0));
    redraw();
  });
  byId("numbers").addEventListener("change", ({ target }) => {
    state.numbers = target.checked;
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("message", ({ data: said }) => { // from the page around a frame
    if (!["light", "dark"].includes(said?.theme) || said.theme === state.theme) return;
    state.theme = said.theme;
    redraw();
    if (run) writeFragment();
  });
  addEventListener("resize", () => {
    if (run && view.fitted) fit();
    if (run) drawMap();
  });
  new ResizeObserver(() => document.body.style.setProperty("--tokens", `${byId("tokens").offsetHeight}px`)).observe(byId("tokens")); // what stays in sight has its place below them
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  for (const listenTo of [listenToTerms, listenToStrips, listenToInput, listenToTokens, listenToMap, listenToKeys, listenToHeads, listenToNext, listenToProduct, listenToMerged]) listenTo();
}

// a fragment may name what this model has not
function checkState() {
  const exists = ([layer, head]) => head < engine.about.headsPerLayer[layer];
  if (!exists([state.layer, state.head])) [state.layer, state.head] = [opening.layer, opening.head];
  state.removed = engine.typed ? state.removed.filter(exists) : [];
  if (!engine.typed && !engine.texts.some(({ text }) => text === state.text)) state.text = opening.text;
}

async function start() {
  byId("about").textContent = data.typed ? data.about.model : data.facts; // of a text that is typed, the top tells
  markTerms();
  showTheme(state.theme);
  try {
    engine = await openEngine(data);
    await openMaps();
  } catch (error) {
    tellProblem(error.message);
    document.body.dataset.ready = "problem";
    return;
  }
  checkState();
  const { error } = engine.about;
  byId("error").textContent = error ? `The numbers of this page have 16 bits each. On its first text, weights differ from the model's by at most ${error.weight.toPrecision(2)}${error.probability === undefined ? "" : `, probabilities by ${error.probability.toPrecision(2)}`}.` : "";
  makeInput();
  makeHeads();
  makeSteps();
  listen();
  await refresh();
  keepReporting();
}

start();
