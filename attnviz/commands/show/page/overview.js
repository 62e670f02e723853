// All heads in miniature: layers down, heads across.

const THUMBNAIL = 32; // cells along a side, at most
let thumbnails = null; // of each head { rows, columns, values }, in the unit of `thumbnails.of`

const cellOf = (head) => document.querySelector(`[data-head="${head}"]`);

function makeOverview() {
  const layers = [...new Set(data.heads.map((head) => head.layer))];
  const across = [...new Set(data.heads.map((head) => head.head))].sort((a, b) => a - b);
  if (across.length > 1) byId("grid").append(headNames(across));
  for (const layer of layers) {
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    row.append(layerName(layer), ...data.heads.flatMap((head, index) => head.layer === layer ? [thumbnailOf(head, index)] : []));
    byId("grid").append(row);
  }
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

// the name of a layer, which chooses all of its heads
function layerName(layer) {
  const name = document.createElement("span"), button = document.createElement("button");
  const heads = data.heads.flatMap((head, index) => head.layer === layer ? [index] : []);
  name.className = "name";
  name.setAttribute("role", "rowheader");
  if (layer === null || heads.length < 2) {
    name.textContent = layer === null ? data.heads[0].label : "L" + layer;
    return name;
  }
  button.type = "button";
  button.textContent = "L" + layer;
  button.title = `overlay the heads of layer ${layer} that are here`;
  button.addEventListener("click", () => {
    state.heads = heads;
    refresh({ keepView: true });
  });
  name.append(button);
  return name;
}

function thumbnailOf(head, index) {
  const cell = document.createElement("button"), bar = document.createElement("i");
  cell.type = "button";
  cell.setAttribute("role", "gridcell");
  cell.dataset.head = index;
  cell.title = [head.title, head.role, head.scores].filter(Boolean).join("\n");
  cell.setAttribute("aria-label", [head.title, head.role].filter(Boolean).join(", "));
  cell.append(document.createElement("canvas"), bar);
  cell.addEventListener("click", (event) => choose(index, event.shiftKey || byId("over").checked));
  return cell;
}

function moveInOverview(event) {
  const step = STEPS[event.key], at = event.target.closest("[data-head]");
  if (!step || !at) return;
  event.preventDefault();
  const from = Number(at.dataset.head);
  const here = data.heads[from], far = (head) => (head.layer - here.layer) * step[0] + (head.head - here.head) * step[1];
  const aside = (head) => step[0] ? head.head !== here.head : head.layer !== here.layer;
  const ahead = data.heads.map((head, index) => ({ index, far: far(head), aside: aside(head) }));
  const [next] = ahead.filter((head) => head.far > 0 && !head.aside).sort((a, b) => a.far - b.far);
  if (next) choose(next.index, event.shiftKey).then(() => cellOf(next.index).focus());
}

function choose(head, over) {
  if (!over) state.heads = [head];
  else if (!state.heads.includes(head)) state.heads = [...state.heads, head];
  else if (state.heads.length > 1) state.heads = state.heads.filter((other) => other !== head);
  return refresh({ keepView: true }); // the same place in another head
}

function showChosen() {
  for (const cell of document.querySelectorAll("[data-head]")) {
    cell.setAttribute("aria-selected", String(state.heads.includes(Number(cell.dataset.head))));
    cell.tabIndex = Number(cell.dataset.head) === state.heads[0] ? 0 : -1;
  }
}

const drawThumbnail = ({ rows, columns, values }, head) => {
  const canvas = cellOf(head).firstChild, picture = pictureOf(rows, columns, (row, column) => values[row * columns + column]);
  [canvas.width, canvas.height] = [picture.width, picture.height];
  canvas.getContext("2d").drawImage(picture, 0, 0);
};

// They show what the heatmap shows: the unit, the rests, the threshold, the orientation.
async function drawOverview() {
  const of = [state.unit, state.sink].join();
  if (thumbnails && thumbnails.of === of) return thumbnails.forEach(drawThumbnail);
  const made = Object.assign([], { of });
  thumbnails = made;
  if (of === "tokens,false") made.push(...await storedThumbnails());
  else for (const head of data.heads.keys()) {
    const levels = await levelsOf(head);
    if (thumbnails !== made) return; // another choice came in between
    made.push(strongestOfBlocks(levels));
    drawThumbnail(made[head], head);
    await breathe();
  }
  if (thumbnails === made) made.forEach(drawThumbnail);
}

async function storedThumbnails() {
  const levels = await unpacked("thumbnails"), [rows, columns] = data.thumbnail;
  const many = data.queries.labels.length, step = Math.ceil(data.keys.labels.length / THUMBNAIL);
  // the last key that one of a block's queries may attend to
  const seen = (row) => data.causal ? data.before + Math.min(many, (row + 1) * Math.ceil(many / THUMBNAIL)) : Infinity;
  return data.heads.map((_, head) => ({
    rows, columns, values: Float32Array.from({ length: rows * columns }, (_, i) => {
      const share = levels[head * rows * columns + i] / 255;
      return (i % columns) * step < seen(Math.floor(i / columns)) ? share * share * data.top : NaN;
    }),
  }));
}

function strongestOfBlocks(levels) {
  const [many, wide] = [groupsOf("queries").length, groupsOf("keys").length];
  const [down, over] = [Math.ceil(many / THUMBNAIL), Math.ceil(wide / THUMBNAIL)];
  const rows = Math.ceil(many / down), columns = Math.ceil(wide / over);
  const values = new Float32Array(rows * columns).fill(NaN);
  for (let row = 0; row < many; row++) rowOf(levels, row).forEach((value, column) => {
    const at = Math.floor(row / down) * columns + Math.floor(column / over);
    if (value > values[at] || Number.isNaN(values[at])) values[at] = value;
  });
  return { rows, columns, values };
}
