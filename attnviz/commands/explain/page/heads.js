// All heads in miniature, layers down, heads across: click to choose one, switch one off to remove it.

const headCell = (layer, head) => document.querySelector(`#grid [data-layer="${layer}"][data-head="${head}"]`);

function makeHeads() {
  const { layers, heads } = engine.about, names = (said, role) => made("span", { role }, said);
  byId("grid").replaceChildren(
    made("div", { role: "row" }, names("", "columnheader"), ...Array.from({ length: heads }, (_, head) => names(`H${head}`, "columnheader"))),
    ...Array.from({ length: layers }, (_, layer) => made("div", { role: "row" }, names(`L${layer}`, "rowheader"), ...Array.from({ length: headsOf(layer) }, (_, head) => makeHead(layer, head)))));
  byId("grid").style.setProperty("--heads", heads);
  byId("removing").hidden = byId("switching").hidden = !engine.typed;
  byId("known").replaceChildren(...data.named.map(({ layer, head, title }) =>
    made("li", {}, made("button", { type: "button", "data-layer": layer, "data-head": head }, nameOf([layer, head])), ` ${title}`)));
  byId("known-for").hidden = !data.named.length;
  followers.push(drawFits);
}

// the part of the picture of all heads that is this one's
function partOf(layer, head) {
  const part = made("i"), { layers, heads } = engine.about, at = (n, of) => `${of > 1 ? 100 * n / (of - 1) : 0}%`;
  part.style.backgroundPosition = `${at(head, heads)} ${at(layer, layers)}`;
  part.style.backgroundSize = `${100 * heads}% ${100 * layers}%`;
  return part;
}

const headsOf = (layer) => engine.about.headsPerLayer[layer];

function makeHead(layer, head) {
  const name = nameOf([layer, head]), known = knownFor(layer, head), title = known ? `${name} · known for: ${known}` : name;
  const choose = made("button", { type: "button", title, "aria-label": title, "data-layer": layer, "data-head": head }, partOf(layer, head));
  const cell = made("div", { role: "gridcell" }, choose);
  if (engine.typed) cell.append(made("input", { type: "checkbox", role: "switch", tabindex: -1, title: `${name} on or off`, "aria-label": `${name} takes part`, "data-switch": name }));
  return cell;
}

// All heads are one picture, of which each button shows its part: a browser takes long over many small ones.
async function drawHeads() {
  const mine = run, { heads, layers } = engine.about, sheet = document.createElement("canvas"), pen = sheet.getContext("2d", { willReadFrequently: true });
  for (let layer = 0; layer < layers; layer++) for (let head = 0; head < headsOf(layer); head++) {
    const { rows, columns, values } = engine.miniature(run, layer, head) ?? patternOf(layer, head), picture = pictureOf(rows, columns, (row, column) => values[row * columns + column]);
    if (!layer && !head) [sheet.width, sheet.height] = [columns * heads, rows * layers];
    pen.drawImage(picture, head * columns, layer * rows);
    pen.fillStyle = css("--empty");
    pen.globalAlpha = 0.8; // of the columns of keys on which a head rests, where they are known
    for (const key of run.layers[layer].rests?.[head] ?? []) pen.fillRect(head * columns + Math.floor(key * columns / run.keys.length), layer * rows, 1, rows);
    pen.globalAlpha = 1;
  }
  markHeads();
  const blob = await new Promise((done) => { sheet.toBlob(done); }), before = byId("grid").sheet;
  if (run !== mine) return; // another text's picture is on its way
  const address = URL.createObjectURL(blob);
  byId("grid").sheet = address;
  byId("grid").style.setProperty("--sheet", `url("${address}")`);
  if (before) setTimeout(() => URL.revokeObjectURL(before), 1000);
}

function markHeads() {
  for (const cell of document.querySelectorAll("#grid [data-layer]")) {
    const [layer, head] = [Number(cell.dataset.layer), Number(cell.dataset.head)], here = layer === state.layer && head === state.head;
    const removed = isRemoved(layer, head), off = cell.nextElementSibling;
    cell.parentElement.setAttribute("aria-selected", String(here));
    cell.parentElement.classList.toggle("removed", removed);
    cell.tabIndex = here ? 0 : -1;
    if (off) [off.checked, off.tabIndex] = [!removed, here ? 0 : -1];
  }
  byId("all-on").style.visibility = state.removed.length ? "" : "hidden"; // it keeps its room
  byId("off").textContent = `Removed: ${state.removed.map(nameOf).join(", ") || "none"}.`;
}

function choose(layer, head) {
  [state.layer, state.head, state.key, state.auto] = [layer, head, null, false];
  drawHead();
}

function toggle(layer, head) {
  const others = state.removed.filter(([l, h]) => l !== layer || h !== head);
  state.removed = others.length < state.removed.length ? others : [...others, [layer, head]];
  markHeads();
  refresh();
}

function moveInHeads(event) {
  const step = STEPS[event.key], at = event.target.closest("[data-layer]");
  if (!at) return;
  const [layer, head] = [Number(at.dataset.layer), Number(at.dataset.head)];
  if (event.key === "Delete" && engine.typed) toggle(layer, head);
  if (!step) return;
  event.preventDefault();
  const next = headCell(layer + step[0], head + step[1]);
  if (!next) return;
  choose(layer + step[0], head + step[1]);
  next.focus();
}

function listenToHeads() {
  for (const part of ["grid", "known"]) byId(part).addEventListener("click", ({ target }) => {
    const at = target.closest("[data-layer]");
    if (at) choose(Number(at.dataset.layer), Number(at.dataset.head));
  });
  byId("grid").addEventListener("change", ({ target }) => {
    const { layer, head } = target.previousElementSibling.dataset;
    toggle(Number(layer), Number(head));
  });
  byId("grid").addEventListener("keydown", moveInHeads);
  byId("all-on").addEventListener("click", () => {
    state.removed = [];
    headCell(state.layer, state.head).focus();
    refresh();
  });
}
