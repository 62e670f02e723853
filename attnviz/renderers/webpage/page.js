// The page's behaviour. Weights stand in script elements of their own, one for each head, and are
// unpacked when a head is shown. All state is in the address's fragment.

// Okabe and Ito 2008: told apart by colour-blind eyes, on light and on dark ground
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DIGITS = data.bytes === 2 ? 4 : 3; // no more than the weights have
const ROW = 20, MOST_LINES = 600, LEAST = 0.01, MARGIN = 84, HIGHEST = 480;

// ---- state, and its way into the fragment and back ----

const initial = { threshold: 0, turn: false, from: false, theme: "", ...data.initial };
const state = { ...initial, ...readFragment() };
const view = { cell: 0, x: 0, y: 0, hover: null, fitted: true };
let patterns = []; // of the chosen heads: { name, color, rows, columns, values }

function readFragment() {
  const found = {}, given = new URLSearchParams(location.hash.slice(1));
  if (!location.hash) return found;
  Object.assign(found, { sink: false, words: false, pin: null }); // a link says all of it
  const heads = (given.get("h") || "").split(",").map((name) => data.heads.findIndex((h) => h.label === name));
  if (heads.length && heads.every((head) => head >= 0)) found.heads = [...new Set(heads)];
  if (given.has("t")) found.threshold = Math.min(1, Math.max(0, Number(given.get("t")) || 0));
  for (const name of ["sink", "words", "turn", "from"]) if (given.get(name) === "1") found[name] = true;
  const pin = /^([qk])(\d+)(?:-(\d+))?$/.exec(given.get("pin") || "");
  if (pin) found.pin = { side: pin[1], index: Number(pin[2]), ...(pin[3] && { after: Number(pin[3]) }) };
  if (["light", "dark"].includes(given.get("theme"))) found.theme = given.get("theme");
  return found;
}

function writeFragment() {
  const kept = new URLSearchParams();
  kept.set("h", state.heads.map((head) => data.heads[head].label).join(","));
  if (state.threshold) kept.set("t", String(state.threshold));
  for (const name of ["sink", "words", "turn", "from"]) if (state[name]) kept.set(name, "1");
  if (state.pin) kept.set("pin", state.pin.side + state.pin.index + (endOf(state.pin) > state.pin.index + 1 ? "-" + endOf(state.pin) : ""));
  if (state.theme) kept.set("theme", state.theme);
  const fragment = "#" + kept.toString().replaceAll("%2C", ",");
  if (fragment === location.hash) return;
  try {
    history.replaceState(null, "", fragment);
  } catch { /* a frame in a notebook has no address of its own */ }
}

// ---- weights ----

const unpacked = (id) => inflated(byId(id).textContent);

const cache = new Map(); // head to its pattern, those that came last

async function wholePattern(head) {
  if (!cache.has(head)) {
    const levels = await unpacked("head-" + head);
    const rows = data.queries.labels.length, columns = data.keys.labels.length;
    const values = new Float32Array(rows * columns).fill(NaN), count = levels.length / data.bytes;
    // two bytes stand in two halves: the high ones of all weights, then the low ones
    const share = (i) => data.bytes === 2 ? (levels[i] * 256 + levels[count + i]) / 65535 : levels[i] / 255;
    let at = 0;
    for (let row = 0; row < rows; row++) {
      const seen = data.causal ? data.before + row + 1 : columns;
      for (let column = 0; column < seen; column++) values[row * columns + column] = share(at++) ** 2 * data.top;
    }
    cache.set(head, { rows, columns, values });
    if (cache.size > 24) cache.delete(cache.keys().next().value);
  }
  return cache.get(head);
}

// weight on a word is the sum over its tokens, a word's row the mean over its tokens
function merged(pattern) {
  const queries = data.queries.words, keys = data.keys.words;
  const values = new Float32Array(queries.length * keys.length);
  queries.forEach(([top, bottom], row) => keys.forEach(([left, right], column) => {
    let sum = 0;
    for (let q = top; q < bottom; q++) for (let k = left; k < right; k++) sum += pattern.values[q * pattern.columns + k] || 0;
    values[row * keys.length + column] = data.causal && left >= data.before + bottom ? NaN : sum / (bottom - top);
  }));
  return { rows: queries.length, columns: keys.length, values };
}

function withoutFirst(pattern) {
  const values = pattern.values.slice(), n = pattern.columns;
  for (let row = 0; row < pattern.rows; row++) {
    values[row * n] = NaN;
    let sum = 0;
    for (let column = 1; column < n; column++) sum += values[row * n + column] || 0;
    // what is left of a row that attends to nothing else is what rounding left
    for (let column = 1; column < n; column++) values[row * n + column] /= sum > 2 * data.error ? sum : NaN;
  }
  return { ...pattern, values };
}

let loads = 0;

// false where another choice came in between
async function load() {
  const mine = ++loads, wanted = state.heads.slice();
  const found = [];
  for (const [i, head] of wanted.entries()) {
    let pattern = await wholePattern(head);
    if (state.words) pattern = merged(pattern);
    if (state.sink) pattern = withoutFirst(pattern);
    found.push({ ...pattern, name: data.heads[head].label, color: COLORS[i % COLORS.length] });
  }
  if (mine !== loads) return false;
  patterns = found;
  if (state.pin && labelsOf(state.pin.side === "q" ? "queries" : "keys").length < endOf(state.pin)) state.pin = null;
  return true;
}

const labelsOf = (side) => state.words ? data[side].wordLabels : data[side].labels;
const weight = (pattern, query, key) => pattern.values[query * pattern.columns + key];
// weights of a row sum to 1 once the first token is left out
const full = () => state.sink ? 1 : data.top;
const shown = (value) => !Number.isNaN(value) && value >= state.threshold;

// ---- colours ----

// one colour for each of 1024 steps, as the four bytes of a pixel
const PIXELS = Uint32Array.from({ length: 1024 }, (_, step) => {
  const [red, green, blue] = colorOf(step / 1023);
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
});
const pixelOf = (share) => PIXELS[Math.max(0, Math.min(1023, Math.round(share * 1023)))];

// ---- overview ----

async function drawOverview() {
  const levels = await unpacked("thumbnails"), [rows, columns] = data.thumbnail;
  const layers = [...new Set(data.heads.map((head) => head.layer))];
  const across = [...new Set(data.heads.map((head) => head.head))].sort((a, b) => a - b);
  if (across.length > 1) byId("grid").append(headNames(across));
  layers.forEach((layer) => {
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    const name = document.createElement("span");
    name.className = "name";
    name.setAttribute("role", "rowheader");
    name.textContent = layer === null ? data.heads[0].label : "L" + layer;
    row.append(name);
    data.heads.forEach((head, index) => {
      if (head.layer !== layer) return;
      const cell = document.createElement("button"), canvas = document.createElement("canvas");
      cell.type = "button";
      cell.setAttribute("role", "gridcell");
      cell.dataset.head = index;
      cell.title = [head.title, head.role, head.scores].filter(Boolean).join("\n");
      cell.setAttribute("aria-label", [head.title, head.role].filter(Boolean).join(", "));
      canvas.width = columns;
      canvas.height = rows;
      const picture = new ImageData(columns, rows);
      const pixels = new Uint32Array(picture.data.buffer);
      for (let i = 0; i < rows * columns; i++) pixels[i] = pixelOf((levels[index * rows * columns + i] / 255) ** 2);
      canvas.getContext("2d").putImageData(picture, 0, 0);
      cell.append(canvas);
      cell.addEventListener("click", (event) => choose(index, event.shiftKey || byId("over").checked));
      row.append(cell);
    });
    byId("grid").append(row);
  });
  byId("grid").addEventListener("keydown", moveInOverview);
}

function headNames(across) {
  const row = document.createElement("div");
  row.setAttribute("role", "row");
  row.append(...["", ...across.map((head) => "H" + head)].map((name) => {
    const cell = document.createElement("span");
    cell.setAttribute("role", "columnheader");
    cell.textContent = name;
    return cell;
  }));
  return row;
}

function moveInOverview(event) {
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const from = Number((event.target.closest("[data-head]") || cellOf(state.heads[0])).dataset.head);
  const here = data.heads[from], far = (head) => (head.layer - here.layer) * step[0] + (head.head - here.head) * step[1];
  const aside = (head) => step[0] ? head.head !== here.head : head.layer !== here.layer;
  const ahead = data.heads.map((head, index) => ({ index, far: far(head), aside: aside(head) }));
  const [next] = ahead.filter((head) => head.far > 0 && !head.aside).sort((a, b) => a.far - b.far);
  if (next) choose(next.index, event.shiftKey).then(() => cellOf(next.index).focus());
}

const cellOf = (head) => document.querySelector(`[data-head="${head}"]`);

function choose(head, over) {
  if (!over) state.heads = [head];
  else if (!state.heads.includes(head)) state.heads = [...state.heads, head];
  else if (state.heads.length > 1) state.heads = state.heads.filter((other) => other !== head);
  return refresh({ keepView: true }); // the same place in another head
}

// ---- heatmap: one picture of a pixel a weight, scaled as it is drawn ----

const map = byId("map"), pen = map.getContext("2d");
let picture = null;

function paint() {
  const pattern = patterns[0];
  picture = document.createElement("canvas");
  const [across, down] = state.turn ? [pattern.rows, pattern.columns] : [pattern.columns, pattern.rows];
  picture.width = across;
  picture.height = down;
  const made = new ImageData(across, down), pixels = new Uint32Array(made.data.buffer);
  for (let query = 0; query < pattern.rows; query++) for (let key = 0; key < pattern.columns; key++) {
    const value = weight(pattern, query, key);
    if (!shown(value)) continue;
    const at = state.turn ? key * across + query : query * across + key;
    pixels[at] = pixelOf(value / full());
  }
  picture.getContext("2d").putImageData(made, 0, 0);
}

function fit() {
  const across = (map.clientWidth - MARGIN) / picture.width, down = HIGHEST / picture.height;
  view.cell = Math.max(0.2, Math.min(40, across, down));
  map.style.height = Math.max(120, picture.height * view.cell) + MARGIN + "px";
  view.x = view.y = 0;
  view.fitted = true;
}

function zoom(factor, x = map.clientWidth / 2, y = map.clientHeight / 2) {
  const cell = Math.min(60, Math.max(0.2, view.cell * factor)), scale = cell / view.cell;
  view.x = (view.x + x - MARGIN) * scale - (x - MARGIN);
  view.y = (view.y + y) * scale - y;
  view.cell = cell;
  view.fitted = false;
  drawMap();
}

function drawMap() {
  const ratio = window.devicePixelRatio || 1, width = map.clientWidth, height = map.clientHeight;
  map.width = Math.round(width * ratio);
  map.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const inside = { width: width - MARGIN, height: height - MARGIN };
  pen.fillStyle = css("--ground");
  pen.fillRect(0, 0, width, height);
  view.x = Math.max(0, Math.min(view.x, picture.width * view.cell - inside.width));
  view.y = Math.max(0, Math.min(view.y, picture.height * view.cell - inside.height));
  pen.imageSmoothingEnabled = view.cell < 1;
  pen.save();
  pen.beginPath();
  pen.rect(MARGIN, 0, inside.width, inside.height);
  pen.clip();
  pen.fillStyle = css("--panel");
  pen.fillRect(MARGIN, 0, picture.width * view.cell, picture.height * view.cell);
  pen.drawImage(picture, MARGIN - view.x, -view.y, picture.width * view.cell, picture.height * view.cell);
  if (view.hover) {
    pen.strokeStyle = css("--mark");
    const x = MARGIN - view.x + view.hover.column * view.cell, y = view.hover.row * view.cell - view.y;
    pen.strokeRect(MARGIN, y, inside.width, view.cell);
    pen.strokeRect(x, 0, view.cell, inside.height);
  }
  pen.restore();
  drawLabels(inside);
}

function drawLabels(inside) {
  const [rows, columns] = state.turn ? ["keys", "queries"] : ["queries", "keys"];
  const step = Math.max(1, Math.ceil(12 / view.cell)), size = Math.max(9, Math.min(12, view.cell * 0.8 * step));
  pen.font = `${size}px system-ui, sans-serif`;
  pen.fillStyle = css("--ink");
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  labelsOf(rows).forEach((label, i) => {
    const y = (i + 0.5) * view.cell - view.y;
    if (i % step === 0 && y > 0 && y < inside.height) pen.fillText(label, MARGIN - 6, y, MARGIN - 8);
  });
  labelsOf(columns).forEach((label, i) => {
    const x = MARGIN + (i + 0.5) * view.cell - view.x;
    if (i % step || x < MARGIN || x > MARGIN + inside.width) return;
    pen.save();
    pen.translate(x, Math.min(inside.height, picture.height * view.cell) + 6);
    pen.rotate(-Math.PI / 2);
    pen.fillText(label, 0, 0, MARGIN - 10);
    pen.restore();
  });
}

function cellAt(x, y) {
  const column = Math.floor((x - MARGIN + view.x) / view.cell), row = Math.floor((y + view.y) / view.cell);
  const inside = x >= MARGIN && row >= 0 && column >= 0 && row < picture.height && column < picture.width;
  return inside ? { row, column } : null;
}

function hoverCell(cell) {
  view.hover = cell;
  drawMap();
  if (!cell) return say("");
  const [query, key] = state.turn ? [cell.column, cell.row] : [cell.row, cell.column];
  const names = `${labelsOf("queries")[query]} → ${labelsOf("keys")[key]}`;
  const values = patterns.map((pattern) => {
    const value = weight(pattern, query, key);
    return (patterns.length > 1 ? pattern.name + " " : "") + (Number.isNaN(value) ? "masked" : value.toFixed(DIGITS));
  });
  say(`${names}  ${values.join("  ")}`);
}

const say = (text) => { byId("status").textContent = text; };

// what the keys reach is brought into view
function follow({ row, column }) {
  const inside = { width: map.clientWidth - MARGIN, height: map.clientHeight - MARGIN };
  view.x = Math.max(Math.min(view.x, column * view.cell), (column + 1) * view.cell - inside.width);
  view.y = Math.max(Math.min(view.y, row * view.cell), (row + 1) * view.cell - inside.height);
}

function listenToMap() {
  let drag = null;
  const fingers = new Map(); // on the map, each where it is
  map.addEventListener("pointermove", (event) => {
    if (fingers.has(event.pointerId)) {
      const apart = () => {
        const [one, other] = [...fingers.values()];
        return other ? { far: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 } : null;
      };
      const before = apart();
      fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      const now = apart();
      if (now) {
        view.x -= now.x - before.x;
        view.y -= now.y - before.y;
        return zoom(now.far / Math.max(1, before.far), now.x, now.y);
      }
    }
    if (drag && !view.fitted) {
      view.x -= event.offsetX - drag.x;
      view.y -= event.offsetY - drag.y;
      drag = { x: event.offsetX, y: event.offsetY };
      drawMap();
    } else hoverCell(cellAt(event.offsetX, event.offsetY));
  });
  map.addEventListener("pointerdown", (event) => {
    drag = { x: event.offsetX, y: event.offsetY };
    if (event.pointerType === "touch") fingers.set(event.pointerId, drag);
    hoverCell(cellAt(event.offsetX, event.offsetY));
  });
  for (const gone of ["pointerup", "pointercancel"]) map.addEventListener(gone, (event) => {
    fingers.delete(event.pointerId);
    drag = null;
  });
  // a finger leaves as soon as it has tapped
  map.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hoverCell(null); });
  map.addEventListener("wheel", (event) => {
    if (event.ctrlKey) {
      event.preventDefault();
      return zoom(Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY);
    }
    const { x, y } = view;
    view.x += event.deltaX;
    view.y += event.deltaY;
    drawMap();
    if (view.x !== x || view.y !== y) event.preventDefault(); // else the page scrolls
  }, { passive: false });
  map.addEventListener("keydown", (event) => {
    if (STEPS[event.key]) {
      event.preventDefault();
      const { row, column } = view.hover || { row: 0, column: 0 }, [down, across] = STEPS[event.key];
      const clamp = (value, most) => Math.max(0, Math.min(most - 1, value));
      const cell = { row: clamp(row + down, picture.height), column: clamp(column + across, picture.width) };
      follow(cell);
      hoverCell(cell);
    } else if (event.key === "+") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
  });
}

// ---- two columns with lines ----

let aimed = null; // the name that the pointer or the keys are at
let columns = null; // the names, which stay while heads come and go, and the lines between them

function drawColumns(token = state.pin) {
  const width = Math.max(320, Math.min(640, byId("columns").clientWidth));
  if (!columns || columns.width !== width || columns.words !== state.words) columns = makeColumns(width);
  const found = links(token), drawn = found.slice(0, token ? found.length : MOST_LINES);
  columns.lines.replaceChildren(...drawn.map(({ query, key, value, color, aside }) => element("line", {
    x1: width * 0.3, y1: ROW * (query + 0.5) + 4 + aside, x2: width * 0.7, y2: ROW * (key + 0.5) + 4 + aside,
    stroke: color, "stroke-width": 1.5, "stroke-opacity": Math.min(1, value / full()).toFixed(3),
  })));
  const many = drawn.length < found.length ? `the strongest ${drawn.length} of ` : "";
  byId("drawn").textContent = `lines: ${many}${found.length} link${found.length === 1 ? "" : "s"} of at least ${Math.max(LEAST, state.threshold)}`;
  for (const name of columns.on) name.classList.remove("on");
  columns.on = token ? columns.names[token.side].slice(token.index, endOf(token)) : [];
  for (const name of columns.on) name.classList.add("on");
}

function makeColumns(width) {
  const queries = labelsOf("queries"), keys = labelsOf("keys");
  const height = ROW * Math.max(queries.length, keys.length) + 8;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "queries on the left, keys on the right" });
  const named = (labels, side, x, anchor) => labels.map((label, index) => {
    const name = element("text", { x, y: ROW * (index + 0.5) + 8, "text-anchor": anchor, "data-side": side, "data-index": index }, label);
    name.append(element("title", {}, label));
    return name;
  });
  const names = { q: named(queries, "q", width * 0.3 - 8, "end"), k: named(keys, "k", width * 0.7 + 8, "start") };
  const lines = element("g", {});
  svg.append(lines, ...names.q, ...names.k);
  byId("columns").replaceChildren(svg);
  aimed = null;
  return { width, words: state.words, names, lines, on: [] };
}

// a link to a finding shows its token
function showPin() {
  if (state.pin) centre(state.pin);
}

function centre(token) {
  const box = byId("columns");
  box.scrollTop = Math.max(0, ROW * (token.index + 0.5) - box.clientHeight / 2);
}

function links(token) {
  const found = [];
  for (const [i, pattern] of patterns.entries()) for (let query = 0; query < pattern.rows; query++) {
    if (token && token.side === "q" && !holds(token, query)) continue;
    for (let key = 0; key < pattern.columns; key++) {
      if (token && token.side === "k" && !holds(token, key)) continue;
      const value = weight(pattern, query, key);
      const aside = 3 * (i - (patterns.length - 1) / 2); // heads on one link stand beside each other
      if (shown(value) && value >= LEAST) found.push({ query, key, value, color: pattern.color, aside });
    }
  }
  return found.sort((a, b) => b.value - a.value);
}

const tokenOf = (target) => target.dataset && target.dataset.side ? { side: target.dataset.side, index: Number(target.dataset.index), after: Number(target.dataset.after) } : null;
const same = (a, b) => a && b && a.side === b.side && a.index === b.index && endOf(a) === endOf(b);
// a token may be several, up to and without `after`: pieces of a letter, a sentence, a segment
const endOf = (token) => Math.max(token.index + 1, token.after || 0);
const holds = (token, index) => index >= token.index && index < endOf(token);

function pin(token) {
  state.pin = !token || same(token, state.pin) ? null : token;
  if (state.pin && !data.cross) state.from = state.pin.side === "k";
  showDirection();
  writeFragment();
  drawColumns();
  shade(state.pin);
}

function listenToColumns() {
  const box = byId("columns");
  box.addEventListener("pointerover", (event) => {
    const token = tokenOf(event.target);
    if (state.pin || !token || same(token, aimed)) return;
    aimed = token;
    drawColumns(token);
  });
  box.addEventListener("pointerleave", () => { aimed = null; drawColumns(); });
  box.addEventListener("click", (event) => pin(tokenOf(event.target)));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") pin(aimed);
    else if (event.key === "Escape") {
      aimed = null;
      pin(null);
    } else if (STEPS[event.key]) {
      const [down, across] = STEPS[event.key], { side, index } = aimed || state.pin || { side: "q", index: -down };
      const to = across < 0 ? "q" : across > 0 ? "k" : side, most = columns.names[to].length - 1;
      aimed = { side: to, index: Math.max(0, Math.min(most, index + down)) };
      drawColumns(aimed);
      centre(aimed);
      shade(aimed);
    } else return;
    event.preventDefault();
  });
}

// ---- the text itself ----

let drawnWords = null; // whether the text was drawn in words or in tokens

function drawText() {
  drawnWords = state.words;
  for (const [side, id] of [["queries", "words-of-queries"], ["keys", "words-of-keys"]]) {
    const box = byId(id);
    box.hidden = side === "queries" && !data.cross;
    box.replaceChildren();
    if (box.hidden) continue;
    const { text, spans, special, words, pieces, labels, shown: [begin, last] } = data[side];
    let end = begin, into = box, within = null; // the part that words go into
    (state.words ? words : pieces).forEach(([first, after], index) => {
      const [start, stop] = [Math.max(spans[first][0], end), spans[after - 1][1]];
      const part = special[first] ? within : partAt(side, start + text.slice(start, stop).search(/\S|$/));
      if (part !== within) {
        within = part;
        into = part === null ? box : partBox(box, side, part);
        if (!text.slice(end, start).trim()) end = start; // blanks between parts
      }
      if (!special[first] && start > end) into.append(readable(text.slice(end, start)));
      const said = special[first] ? labels[first] : readable(text.slice(start, stop));
      if (!said) return; // a mark that a word begins
      const word = document.createElement("span");
      word.dataset.side = side === "queries" ? "q" : "k";
      word.dataset.index = state.words ? index : first;
      word.dataset.after = state.words ? index + 1 : after; // pieces of one letter stand together
      word.textContent = said;
      word.tabIndex = box.querySelector("span") ? -1 : 0; // one stop, from which arrows go on
      into.append(word, special[first] ? " " : "");
      if (into !== box) stretch(into.firstChild, word);
      if (!special[first]) end = Math.max(end, stop);
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

// the mean over queries of the sum over keys, as pieces of a word are put together
function weightOf(queries, keys) {
  let sum = 0, seen = false;
  for (let query = queries[0]; query < queries[1]; query++) for (let key = keys[0]; key < keys[1]; key++) {
    const value = query < patterns[0].rows && key < patterns[0].columns ? weight(patterns[0], query, key) : NaN;
    if (!Number.isNaN(value)) [sum, seen] = [sum + value, true];
  }
  return seen ? sum / (queries[1] - queries[0]) : NaN;
}

function shade(token) {
  const back = token && token.side === "k";
  const here = token && [token.index, endOf(token)];
  for (const word of document.querySelectorAll("#text span")) {
    const index = Number(word.dataset.index), side = word.dataset.side, there = [index, Number(word.dataset.after)];
    word.classList.toggle("on", Boolean(token && (side === token.side || !data.cross) && holds(token, index)));
    word.style.background = "";
    if (!token || !patterns.length) continue;
    const value = back ? weightOf(there, here) : weightOf(here, there);
    const other = data.cross ? side !== token.side : true;
    if (other && shown(value)) word.style.background = `rgb(234 88 12 / ${Math.min(1, value / full()).toFixed(3)})`;
  }
  if (token && patterns.length) say(inWords(token, back, here));
}

// `creature → blue 0.69, fluffy 0.30`: the strongest in words, for those who do not see colours
function inWords(token, back, here) {
  const others = labelsOf(back ? "queries" : "keys").map((label, index) => {
    const there = [index, index + 1];
    return { label, value: back ? weightOf(there, here) : weightOf(here, there) };
  });
  const strongest = others.filter((other) => shown(other.value) && other.value >= LEAST).sort((a, b) => b.value - a.value);
  const told = strongest.slice(0, 3).map((other) => `${other.label} ${other.value.toFixed(2)}`).join(", ");
  const name = nameOf(token);
  return `${name} ${back ? "←" : "→"} ${told || "nothing"}`;
}

// of a part its own, of pieces of a letter the first one's
function nameOf(token) {
  const part = [...document.querySelectorAll("#text small")].find((small) => same(tokenOf(small), token));
  return part ? part.textContent : labelsOf(token.side === "q" ? "queries" : "keys")[token.index];
}

// a word of a text that attends to itself is a query, or a key where it is asked what attends to it
function wordOf(target) {
  const token = tokenOf(target);
  return token && !data.cross ? { ...token, side: state.from ? "k" : "q" } : token;
}

function showDirection() {
  for (const choice of document.getElementsByName("direction")) choice.checked = (choice.value === "from") === state.from;
}

function listenToText() {
  byId("text").addEventListener("pointerover", (event) => {
    const token = wordOf(event.target);
    if (token) shade(token);
  });
  byId("text").addEventListener("pointerleave", () => shade(state.pin));
  byId("text").addEventListener("focusin", (event) => {
    const token = wordOf(event.target);
    if (token) shade(token);
  });
  byId("text").addEventListener("focusout", () => shade(state.pin));
  byId("text").addEventListener("keydown", (event) => {
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
  byId("text").addEventListener("click", (event) => {
    const token = wordOf(event.target);
    if (token) pin(token);
  });
  for (const choice of document.getElementsByName("direction")) choice.addEventListener("change", () => {
    state.from = choice.value === "from" && choice.checked;
    if (state.pin) state.pin = { ...state.pin, side: state.from ? "k" : "q" };
    writeFragment();
    drawColumns();
    shade(state.pin);
  });
}

// ---- what is taken along ----

function csv() {
  // what a spreadsheet would compute is text
  const guarded = (label) => /^[=+\-@\t\r]/.test(label) ? "'" + label : label;
  const cell = (given, label = guarded(given)) => /[",\n\r]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label;
  const rows = patterns.flatMap((pattern) => {
    const found = [];
    for (let query = 0; query < pattern.rows; query++) for (let key = 0; key < pattern.columns; key++) {
      const value = weight(pattern, query, key);
      if (shown(value)) found.push([pattern.name, query, cell(labelsOf("queries")[query]), key, cell(labelsOf("keys")[key]), value.toFixed(DIGITS)].join(","));
    }
    return found;
  });
  return ["head,query,query_token,key,key_token,weight", ...rows].join("\n") + "\n";
}

function save(blob, suffix) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `attnviz-${patterns[0].name}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// the heatmap as it stands, with its head and its text above it
function titled() {
  const picture = document.createElement("canvas"), ratio = window.devicePixelRatio || 1, room = 44 * ratio;
  picture.width = map.width;
  picture.height = map.height + room;
  const pen = picture.getContext("2d");
  pen.fillStyle = css("--ground");
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.fillStyle = css("--ink");
  pen.font = `${14 * ratio}px system-ui, sans-serif`;
  pen.fillText(data.heads[state.heads[0]].title, 6 * ratio, 18 * ratio, picture.width - 12 * ratio);
  pen.fillText(`${data.title} (${data.about}); 0 to ${full().toFixed(2)}`, 6 * ratio, 37 * ratio, picture.width - 12 * ratio);
  pen.drawImage(map, 0, room);
  return picture;
}

async function copy() {
  try {
    await navigator.clipboard.writeText(csv());
    say("copied");
  } catch {
    save(new Blob([csv()], { type: "text/csv" }), "csv");
  }
}

function svg() {
  const drawn = byId("columns").firstChild.cloneNode(true);
  drawn.setAttribute("xmlns", NS);
  drawn.setAttribute("font-family", "sans-serif");
  drawn.setAttribute("font-size", "12");
  return new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" });
}

// ---- together ----

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
  writeFragment();
  byId("threshold").value = state.threshold;
  byId("threshold-value").textContent = state.threshold.toFixed(2);
  for (const name of ["sink", "words", "turn"]) byId(name).checked = state[name];
  showDirection();
  byId("top").textContent = full().toFixed(2);
  showTheme(state.theme);
  if (!(await load())) return;
  for (const cell of document.querySelectorAll("[data-head]")) {
    const chosen = state.heads.includes(Number(cell.dataset.head));
    cell.setAttribute("aria-selected", String(chosen));
    cell.tabIndex = Number(cell.dataset.head) === state.heads[0] ? 0 : -1;
  }
  byId("head-title").textContent = state.heads.map((head) => data.heads[head].title).join("; ");
  const first = data.heads[state.heads[0]];
  const known = [first.role, first.scores].filter(Boolean).join("; ");
  byId("scores").textContent = known && `${first.label} on this text: ${known}`;
  paint();
  if (!keepView || view.fitted) fit();
  drawMap();
  drawLegend();
  drawColumns();
  if (drawnWords !== state.words) drawText();
  say("");
  shade(state.pin);
  document.body.dataset.ready = state.heads.map((head) => data.heads[head].label).join();
}

function listen() {
  byId("threshold").addEventListener("input", (event) => {
    state.threshold = Number(event.target.value);
    refresh({ keepView: true });
  });
  for (const name of ["sink", "words", "turn"]) byId(name).addEventListener("change", (event) => {
    state[name] = event.target.checked;
    if (name === "words") state.pin = null;
    refresh();
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
    drawMap();
    drawColumns();
  });
  window.addEventListener("hashchange", () => {
    Object.assign(state, initial, readFragment());
    refresh().then(showPin);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  listenToMap();
  listenToColumns();
  listenToText();
}

async function start() {
  byId("title").textContent = data.title;
  byId("about").textContent = data.about;
  byId("notes").textContent = data.notes.join("; ");
  byId("error").textContent = `The weights on this page are exact to ${data.error.toPrecision(2)}. With the first token removed, the error grows by the factor by which a row is rescaled.`;
  byId("sink").disabled = data.dropped;
  byId("directions").hidden = data.cross;
  const steps = data.viridis.map((color) => `rgb(${color.join(" ")})`);
  document.querySelector("#scale i").style.background = `linear-gradient(to right, ${steps.join(", ")})`;
  await drawOverview();
  listen();
  await refresh();
  showPin();
}

start();
