// The heatmap: one picture of a pixel a weight, scaled as it is drawn. The page has the state: `spot`
// (what all views show), `patterns`, `labelsOf`, `weight`, `shown`, `full`, and what `aim` and `pin` do.

const HIGHEST = 480, GAP = 6, SIZES = [9, 12]; // pixels: of the cells together, beside labels, of letters
const map = byId("map"), pen = map.getContext("2d");
const view = { cell: 0, x: 0, y: 0, fitted: true, left: 0, below: 0, at: "", cellAimed: null };
let picture = null;

const sidesShown = () => state.turn ? ["keys", "queries"] : ["queries", "keys"];
const inside = () => ({ width: map.clientWidth - view.left, height: map.clientHeight - view.below });

const READ = ["a query, the token that attends", "a key, a token that it attends to"];

function paint() {
  const pattern = patterns[0], [row, column] = state.turn ? [READ[1], READ[0]] : READ;
  byId("reading").textContent = `heatmap: a row is ${row}; a column is ${column}`;
  picture = pictureOf(pattern.rows, pattern.columns, (query, key) => weight(pattern, query, key));
}

// labels have the room that the longest needs, up to a third of the width
function measure() {
  const [rows, columns] = sidesShown(), most = Math.min(220, map.clientWidth / 3);
  pen.font = "bold " + fontOf(SIZES[1]); // as wide as a label that is marked
  const longest = (side) => Math.max(...labelsOf(side).map((label) => pen.measureText(label).width));
  view.left = Math.ceil(Math.min(most, longest(rows)) + 2 * GAP);
  view.below = Math.ceil(Math.min(most, longest(columns)) + 2 * GAP);
}

const fontOf = (size) => `${size}px system-ui, sans-serif`;

function fit() {
  measure();
  const across = (map.clientWidth - view.left) / picture.width, down = HIGHEST / picture.height;
  view.cell = Math.max(0.2, Math.min(40, across, down));
  map.style.height = Math.max(120, picture.height * view.cell) + view.below + "px";
  view.x = view.y = 0;
  view.fitted = true;
}

function zoom(factor, x = map.clientWidth / 2, y = map.clientHeight / 2) {
  const cell = Math.min(60, Math.max(0.2, view.cell * factor)), scale = cell / view.cell;
  view.x = (view.x + x - view.left) * scale - (x - view.left);
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
  const room = inside();
  pen.fillStyle = css("--ground");
  pen.fillRect(0, 0, width, height);
  view.x = Math.max(0, Math.min(view.x, picture.width * view.cell - room.width));
  view.y = Math.max(0, Math.min(view.y, picture.height * view.cell - room.height));
  pen.imageSmoothingEnabled = view.cell < 1;
  pen.save();
  pen.beginPath();
  pen.rect(view.left, 0, room.width, room.height);
  pen.clip();
  pen.fillStyle = hatched();
  pen.fillRect(view.left, 0, picture.width * view.cell, picture.height * view.cell);
  pen.drawImage(picture, view.left - view.x, -view.y, picture.width * view.cell, picture.height * view.cell);
  outline();
  pen.restore();
  drawLabels(room);
}

// what lies behind cells, and is seen where there is none: grey with stripes, as no weight has
function hatched() {
  const tile = document.createElement("canvas"), brush = tile.getContext("2d");
  tile.width = tile.height = 6;
  brush.fillStyle = css("--empty");
  brush.fillRect(0, 0, 6, 6);
  brush.strokeStyle = css("--hatch");
  brush.lineWidth = 1.5;
  for (const at of [-6, 0, 6]) { // a stripe goes on in the next tile
    brush.moveTo(at - 1, 7);
    brush.lineTo(at + 7, -1);
  }
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}

// a band over the token that all views show, and a box around its link to the other
function outline() {
  if (!spot) return;
  const { token, other } = spot, many = endOf(token) - token.index;
  const box = (row, column, rows, columns, wide) => {
    pen.lineWidth = wide;
    pen.strokeRect(view.left - view.x + column * view.cell, row * view.cell - view.y, columns * view.cell, rows * view.cell);
  };
  pen.strokeStyle = css("--mark");
  const isRow = (token.side === "q") !== state.turn;
  if (isRow) box(token.index, 0, many, picture.width, 1.5);
  else box(0, token.index, picture.height, many, 1.5);
  if (other === null) return;
  if (isRow) box(token.index, other, many, 1, 3);
  else box(other, token.index, 1, many, 3);
}

function drawLabels(room) {
  const [rows, columns] = sidesShown(), here = (side, index) => spot && SIDES[spot.token.side] === side && holds(spot.token, index);
  const step = Math.max(1, Math.ceil(12 / view.cell)), size = Math.max(SIZES[0], Math.min(SIZES[1], view.cell * 0.8 * step));
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const inks = { true: css("--mark"), false: css("--ink") };
  const label = (side, index, x, y) => {
    const on = Boolean(here(side, index));
    pen.font = (on ? "bold " : "") + fontOf(size);
    pen.fillStyle = inks[on];
    pen.fillText(clipped(labelsOf(side)[index], (side === rows ? view.left : view.below) - 2 * GAP), x, y);
  };
  // of small cells only some have a label, and none that would cover that of the token
  const far = (side, index) => !spot || SIDES[spot.token.side] !== side || index >= endOf(spot.token) - 1 + step || index <= spot.token.index - step;
  const chosen = (side, index) => spot && here(side, index) ? index === spot.token.index : index % step === 0 && far(side, index);
  for (let i = 0; i < picture.height; i++) {
    const y = (i + 0.5) * view.cell - view.y;
    if (chosen(rows, i) && y > 0 && y < room.height) label(rows, i, view.left - GAP, Math.max(y, size / 2)); // the first one is whole
  }
  for (let i = 0; i < picture.width; i++) {
    const x = view.left + (i + 0.5) * view.cell - view.x;
    if (!chosen(columns, i) || x < view.left || x > view.left + room.width) continue;
    pen.save();
    pen.translate(x, Math.min(room.height, picture.height * view.cell) + GAP);
    pen.rotate(-Math.PI / 2);
    label(columns, i, 0, 0);
    pen.restore();
  }
}

// the label, or as much of it as fits, in the font of the pen
function clipped(label, width) {
  if (pen.measureText(label).width <= width + 1) return label;
  const letters = [...label]; // no half of a letter
  let some = letters.length - 1;
  while (some > 1 && pen.measureText(letters.slice(0, some).join("") + "…").width > width) some--;
  return letters.slice(0, some).join("") + "…";
}

// what is under a point: a cell, or the label of a row or of a column
function cellAt(x, y) {
  const column = Math.floor((x - view.left + view.x) / view.cell), row = Math.floor((y + view.y) / view.cell);
  const inRows = row >= 0 && row < picture.height && y < inside().height;
  const inColumns = column >= 0 && column < picture.width && x >= view.left;
  if (inRows && inColumns) return { row, column };
  if (inRows && x < view.left) return { row };
  return inColumns && y >= 0 ? { column } : null;
}

// the token and the other one of a cell: always from its query, but for a key's label
function focusOf({ row, column }) {
  const [query, key] = state.turn ? [column, row] : [row, column];
  if (query === undefined) return { token: { side: "k", index: key }, other: null };
  return { token: { side: "q", index: query }, other: key === undefined ? null : key };
}

function aimAtCell(cell) {
  const name = cell ? [cell.row, cell.column].join() : "";
  if (name && aimed && name === view.at) return; // still there
  view.at = name;
  view.cellAimed = cell && cell.row !== undefined && cell.column !== undefined ? cell : null;
  aim(cell && focusOf(cell));
  if (view.cellAimed) say(toldOf(focusOf(cell)));
}

// `creature → blue 0.6912`: the weight of a cell in every head that is shown
function toldOf({ token, other }) {
  const values = patterns.map((pattern) => {
    const value = weight(pattern, token.index, other);
    return (patterns.length > 1 ? pattern.name + " " : "") + (Number.isNaN(value) ? "masked" : value.toFixed(DIGITS));
  });
  return `${labelsOf("queries")[token.index]} → ${labelsOf("keys")[other]}  ${values.join("  ")}`;
}

// what all views show, or what the keys reach, is brought into view
function followSpot() {
  const { token, other } = spot, isRow = (token.side === "q") !== state.turn, beside = other ?? 0;
  follow(isRow ? { row: token.index, column: beside } : { row: beside, column: token.index });
  drawMap();
}

function follow({ row, column }) {
  const room = inside();
  view.x = Math.max(Math.min(view.x, column * view.cell), (column + 1) * view.cell - room.width);
  view.y = Math.max(Math.min(view.y, row * view.cell), (row + 1) * view.cell - room.height);
}
