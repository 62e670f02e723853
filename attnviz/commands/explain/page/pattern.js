// The pattern of the chosen head: its title, its heatmap, and the row of the chosen query as bars.

let patterns = []; // what the heatmap draws
const weight = (pattern, query, key) => pattern.values[query * pattern.columns + key];
const full = () => 1; // a weight of 1 has the full colour
const shown = (value) => !Number.isNaN(value);
const tokenName = (token) => labelsOf(SIDES[token.side])[token.index];
const endOf = (token) => token.index + 1;
const holds = (token, index) => index === token.index;
const say = (text) => { byId("status").textContent = text; };

// (rows, columns) of a head's weights; NaN is masked
function patternOf(layer, head) {
  const [rows, columns] = [run.queries.length, run.keys.length], isMasked = maskOf(layer, head);
  const values = ofHead(run.layers[layer].pattern, head).slice();
  for (let i = 0; i < values.length; i++) if (isMasked(Math.floor(i / columns), i % columns)) values[i] = NaN;
  return { rows, columns, values, name: nameOf([layer, head]), color: css("--weight") };
}

// the texts of the page, each with the head and the query that explain picks for it, and its first line
const examples = [{ ...opening, headline: data.headline }, ...(data.examples || [])];
let headlines = examples; // what is claimed of a text, a head and a query
const namedOf = (layer, head) => data.named.filter((each) => each.layer === layer && each.head === head);
const knownFor = (layer, head) => namedOf(layer, head).map(({ title }) => title).join("; ");

// the claim: explain's own where it made it, else what the row says, and what the head is known for
function claimOf({ layer, head, query }) {
  const said = headlines.find((each) => each.text === run.text && each.layer === layer && each.head === head && each.query === query);
  if (said && !state.removed.length) return said.headline;
  const found = strongest(query, { layer, head }).filter(({ value }) => value >= TELLING).slice(0, 3);
  const keys = found.map(({ key, value }) => `${key === query && isSelf() ? "itself" : keyLabel(key)} ${share(value)}`).join(", ");
  const named = namedOf(layer, head), here = named.filter((each) => isShown(each, query)), known = (here.length ? here : named).map(({ title }) => title).join("; ");
  const off = state.removed.length ? ` · without ${state.removed.map(nameOf).join(", ")}` : "";
  return `${nameOf([layer, head])}${keys ? `: ${run.queries[query].label} → ${keys}` : ""}${known && ` · known for: ${known}${here.length ? "" : " (not on this row)"}`}${off}`;
}

const claim = () => claimOf(state);

function drawPattern({ keepView = false } = {}) {
  patterns = [patternOf(state.layer, state.head)];
  byId("claim").textContent = claim();
  byId("top").textContent = "1";
  byId("masked").hidden = !patterns[0].values.some(Number.isNaN);
  paint();
  if (!keepView || view.fitted) fit();
}

// the row that is asked for, as bars
function drawRow() {
  const { keys, left } = seenKeys(), weights = weightsOf(state.layer, state.head, spot.query);
  byId("row-title").replaceChildren("What ", word(queryLabel()), " attends to");
  byId("row").replaceChildren(...keys.map((key) => {
    const bar = made("i"), line = made("div", { class: "bar", role: "option", tabindex: -1, "data-key": key }, made("span", {}, bare(keyLabel(key))), bar, made("b", {}, number(weights[key])));
    bar.style.setProperty("--share", weights[key]);
    return line;
  }));
  byId("row-left").textContent = left ? `… and ${left} weaker keys` : "";
}

// Keys stand in several lists. What is chosen in one is marked in all; arrows move within a list.

function markKeys() {
  for (const row of document.querySelectorAll("main [data-key]")) {
    const on = Number(row.dataset.key) === spot.key;
    row.classList.toggle("on", on);
    row.setAttribute("aria-selected", String(on));
  }
  for (const list of document.querySelectorAll(".keys")) {
    const rows = [...list.querySelectorAll("[data-key]")], chosen = rows.find((row) => row.classList.contains("on")) || rows[0];
    for (const row of rows) row.tabIndex = row === chosen ? 0 : -1;
  }
}

function listenToKeys() {
  const main = document.querySelector("main"), rowAt = ({ target }) => target.closest("[data-key]");
  const place = (row) => ({ query: spot.query, key: Number(row.dataset.key) });
  for (const kind of ["pointerover", "focusin"]) main.addEventListener(kind, (event) => {
    const row = rowAt(event);
    if (row && Number(row.dataset.key) !== spot.key) aim(place(row));
  });
  main.addEventListener("pointerout", (event) => {
    const row = rowAt(event);
    if (row && !(event.relatedTarget && event.relatedTarget.closest && event.relatedTarget.closest(".keys"))) aim(null);
  });
  main.addEventListener("click", (event) => {
    const row = rowAt(event);
    if (row) pin(place(row));
  });
  main.addEventListener("keydown", (event) => {
    const row = rowAt(event), step = STEPS[event.key];
    if (!row) return;
    if (event.key === "Enter" || event.key === " ") pin(place(row));
    else if (step && step[0]) {
      const rows = [...row.closest(".keys").querySelectorAll("[data-key]")], next = rows[rows.indexOf(row) + step[0]];
      if (!next) return event.preventDefault();
      pin(place(next));
      next.focus();
    } else return;
    event.preventDefault();
  });
}
