// The page's views together. What one of them shows of a token, all of them show.

let loading = true;

function drawFocus() {
  if (loading) return; // what is shown is about to be another
  spot = findSpot();
  drawMap();
  drawColumns();
  shade();
  tell();
  say(spot ? inWords(spot.token) : "");
  for (const follow of followers) follow();
}

const say = (text) => { byId("status").textContent = text; };

// in the views that the pointer is not over
function bringIntoView() {
  if (loading || !spot) return;
  if (!byId("columns").matches(":hover")) centre(spot);
  showInText();
  if (!view.fitted && !map.matches(":hover")) followSpot();
}

// the pointer or the keys are at a token, for a while; null: no longer
function aim(at) {
  if (!at && !aimed) return;
  aimed = at;
  drawFocus();
  bringIntoView();
}

// what is pinned stays; again, it is unpinned
function pin(token, other = null) {
  const again = !token || (same(token, state.pin) && other === state.other);
  state.pin = again ? null : token;
  state.other = again ? null : other;
  if (again) aimed = null;
  if (state.pin && !data.cross) state.from = state.pin.side === "k";
  showDirection();
  writeFragment();
  drawFocus();
  bringIntoView();
}

// the weights are those that the model computed, of tokens
const isPlain = () => state.unit === "tokens" && !state.sink;
const titleOf = (head) => isPlain() ? data.heads[head].title : data.heads[head].name;

function drawTitle() {
  byId("head-title").textContent = state.heads.map(titleOf).join("; ");
  const first = data.heads[state.heads[0]], known = [first.role, first.scores].filter(Boolean).join("; ");
  const before = isPlain() && !data.changed ? "" : ", as the model computed it, with nothing merged or removed";
  byId("scores").textContent = known && `${first.label} on this ${data.what}${before}: ${known}`;
  byId("removed").textContent = state.sink ? removedText() : "";
}

const LONGEST = 24; // letters of a label in a sentence

// how much weight the removed keys had, and which rows had nothing else
function removedText() {
  const { rows, columns, values, name, share } = patterns[0], queries = labelsOf("queries");
  const blank = queries.filter((_, row) => values.subarray(row * columns, (row + 1) * columns).every(Number.isNaN));
  const cut = (label) => label.length > LONGEST ? label.slice(0, LONGEST - 1) + "…" : label;
  const few = (labels) => labels.slice(0, SHOWN).map(cut).concat(labels.length > SHOWN ? [`${labels.length - SHOWN} more`] : []).join(", ");
  const without = blank.length ? ` Blank, as they attend to nothing else: ${few(blank)}.` : "";
  const removed = [...removedOf(data.heads[state.heads[0]])].map((key) => labelsOf("keys")[key]);
  return `Removed: ${few(removed)}, with ${Number.isNaN(share) ? "all" : `${Math.round(100 * share)}%`} of the weight in ${name}. What is left of a row is scaled to sum to 1, unless it is less than ${data.little}.${without}`;
}

function drawLegend() {
  const parts = patterns.map((pattern) => {
    const name = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = pattern.color;
    name.append(mark, pattern.name);
    return name;
  });
  if (parts.length > 1) parts.push(`heatmap: ${patterns[0].name}`);
  byId("legend").replaceChildren(...(parts.length > 1 ? parts : []));
}

async function refresh({ keepView = false } = {}) {
  loading = true;
  comparisons++; // what is compared is of another state
  byId("threshold").value = state.threshold;
  byId("threshold-value").textContent = state.threshold.toFixed(2);
  for (const name of ["sink", "turn"]) byId(name).checked = state[name];
  byId("unit").value = state.unit;
  showTheme(state.theme);
  if (!(await load())) return;
  loading = false;
  aimed = null;
  writeFragment();
  showDirection();
  byId("top").textContent = full().toFixed(2);
  showChosen();
  drawTitle();
  paint();
  if (!keepView || view.fitted) fit();
  if (drawnUnit !== state.unit) drawText();
  drawLegend();
  drawFocus();
  document.body.dataset.ready = state.heads.map((head) => data.heads[head].label).join();
  await drawOverview();
}

function listen() {
  byId("threshold").addEventListener("input", (event) => {
    state.threshold = Number(event.target.value);
    refresh({ keepView: true });
  });
  for (const name of ["sink", "turn"]) byId(name).addEventListener("change", (event) => {
    state[name] = event.target.checked;
    aimed = null;
    refresh();
  });
  byId("unit").addEventListener("change", (event) => {
    aimed = null;
    changeUnit(event.target.value);
    refresh().then(bringIntoView);
  });
  byId("theme").addEventListener("click", () => {
    state.theme = otherTheme(state.theme);
    refresh({ keepView: true });
  });
  byId("csv").addEventListener("click", copy);
  byId("png").addEventListener("click", () => titled().toBlob((blob) => save(blob, "png")));
  byId("svg").addEventListener("click", () => save(svg(), "svg"));
  byId("zoom-in").addEventListener("click", () => zoom(1.25));
  byId("zoom-out").addEventListener("click", () => zoom(0.8));
  byId("zoom-fit").addEventListener("click", () => { fit(); drawMap(); });
  window.addEventListener("resize", () => {
    if (view.fitted) fit();
    drawFocus();
  });
  window.addEventListener("hashchange", () => {
    Object.assign(state, initial, readFragment());
    refresh().then(bringIntoView);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => refresh({ keepView: true }));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  listenToMap();
  listenToColumns();
  listenToText();
}

// units that merge nothing on this text are not offered
function offerUnits() {
  const merges = (unit) => Object.values(SIDES).some((side) => data[side].units[unit].groups.length < data[side].labels.length);
  const kinds = ["chars", "words"].filter(merges);
  for (const option of byId("unit").options) option.hidden = option.disabled = option.value !== "tokens" && !kinds.includes(option.value);
  byId("unit").parentElement.hidden = !kinds.length;
}

async function start() {
  byId("about").textContent = data.about;
  byId("notes").textContent = data.notes.join("; ");
  byId("error").textContent = `The weights on this page are exact to ${data.error.toPrecision(2)}. With keys removed, the error grows by the factor by which a row is rescaled.`;
  byId("sink").disabled = data.dropped;
  byId("directions").hidden = data.cross;
  offerUnits();
  makeAnswer();
  makeOverview();
  listen();
  await refresh();
  bringIntoView();
  keepReporting();
}

start();
