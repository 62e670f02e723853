// Two pictures of all heads, which point at each other: a scatter of two scores, and a grid.

const LEFT = 46, BELOW = 38, EDGE = 10, NEAR = 28;
let dots = []; // of each head: { x, y, dot }, or null where it has no value
let cells = [];
let plotted = { across: 0 }; // what the scatter was drawn with
let pointed = null; // the head that the pointer or the keys are at

function drawOverview() {
  drawGrid();
  drawScatter();
  paint();
}

// ---- scatter ----

// from a little below the smallest value, or from 0 where that is near, to a little above the largest
function rangeOf(score) {
  const values = heads.map(({ index }) => valueOf(score, index)).filter((value) => value !== null);
  const low = Math.min(...values), high = Math.max(...values), pad = (high - low || high || 1) * 0.06;
  return [low < (high - low) * 0.5 ? 0 : low - pad, high + pad];
}

function ticksOf([low, high], most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= rough);
  const first = Math.ceil(low / step), n = Math.floor(high / step) - first + 1;
  return Array.from({ length: n }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

const axisName = ({ label, unit }) => label + (unit && ` (${unit})`);

function drawScatter() {
  const box = byId("scatter"), across = box.clientWidth, down = Math.round(Math.min(340, Math.max(230, across * 0.66)));
  const x = scores.get(state.x), y = scores.get(state.y);
  const inside = { width: across - LEFT - EDGE, height: down - BELOW - EDGE };
  plotted = { across };
  const both = heads.filter(({ index }) => valueOf(state.x, index) !== null && valueOf(state.y, index) !== null);
  const left = heads.length - both.length;
  byId("missing").textContent = left ? `${count(left, "head")} without one of these scores ${left === 1 ? "is" : "are"} not drawn.` : "";
  box.setAttribute("aria-label", `Heads by ${x.label} and ${y.label}: arrow keys move to the next head in this direction`);
  dots = heads.map(() => null);
  if (!both.length) return box.replaceChildren(make("p", "hint", "No head has both scores."));
  const svg = element("svg", { width: across, height: down, viewBox: `0 0 ${across} ${down}`, "aria-hidden": "true" });
  const [xs, ys] = [rangeOf(state.x), rangeOf(state.y)];
  const placeX = (value) => LEFT + (value - xs[0]) / (xs[1] - xs[0]) * inside.width;
  const placeY = (value) => EDGE + (1 - (value - ys[0]) / (ys[1] - ys[0])) * inside.height;
  for (const tick of ticksOf(xs, inside.width / 70)) svg.append(
    element("line", { x1: placeX(tick), x2: placeX(tick), y1: EDGE, y2: EDGE + inside.height, class: "rule" }),
    element("text", { x: placeX(tick), y: EDGE + inside.height + 14, "text-anchor": "middle" }, tick.toLocaleString("en")));
  for (const tick of ticksOf(ys, inside.height / 45)) svg.append(
    element("line", { x1: LEFT, x2: LEFT + inside.width, y1: placeY(tick), y2: placeY(tick), class: "rule" }),
    element("text", { x: LEFT - 5, y: placeY(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en")));
  svg.append(
    element("text", { x: LEFT + inside.width / 2, y: down - 5, "text-anchor": "middle", class: "axis" }, axisName(x)),
    element("text", { x: 0, y: 0, "text-anchor": "middle", class: "axis", transform: `translate(11 ${EDGE + inside.height / 2}) rotate(-90)` }, axisName(y)));
  const size = both.length > 400 ? 3.5 : 5, all = element("g", {});
  for (const { index } of both) {
    const at = { x: placeX(valueOf(state.x, index)), y: placeY(valueOf(state.y, index)) };
    const dot = element("circle", { cx: at.x.toFixed(1), cy: at.y.toFixed(1), r: size, "data-dot": index });
    all.append(dot);
    dots[index] = { ...at, dot };
  }
  svg.append(all);
  // above, in a picture of their own: a browser draws a thousand dots again when one of them changes
  box.replaceChildren(svg, element("svg", { width: across, height: down, id: "marks", "aria-hidden": "true" }));
}

// rings around the chosen head and the one that is pointed at, with their names, above all dots
function drawMarks() {
  const marks = byId("marks");
  if (!marks) return;
  const wanted = [[state.head, "on"], ...(pointed === null || pointed === state.head ? [] : [[pointed, "near"]])];
  marks.replaceChildren(...wanted.filter(([head]) => dots[head]).flatMap(([head, kind]) => {
    const { x, y } = dots[head], end = x > plotted.across - 70;
    const name = element("text", { x: end ? x - 11 : x + 11, y: y + 4, "text-anchor": end ? "end" : "start", class: kind }, heads[head].name);
    return [element("circle", { cx: x, cy: y, r: 8, class: kind }), name];
  }));
}

function dotAt(event) {
  const box = byId("scatter").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let nearest = null, least = NEAR;
  dots.forEach((place, index) => {
    const far = place ? Math.hypot(place.x - x, place.y - y) : Infinity;
    if (far < least) [nearest, least] = [index, far];
  });
  return nearest;
}

// the nearest dot that lies in this direction, rather ahead than aside
function dotBeside(head, [down, across]) {
  const from = dots[head];
  if (!from) return dots.findIndex(Boolean);
  let nearest = head, least = Infinity;
  dots.forEach((place, index) => {
    if (!place || index === head) return;
    const x = place.x - from.x, y = place.y - from.y;
    const ahead = x * across + y * down, aside = Math.abs(x * down + y * across), far = ahead + 2 * aside;
    if (ahead > 0 && far < least) [nearest, least] = [index, far];
  });
  return nearest;
}

// ---- grid ----

function drawGrid() {
  const grid = byId("grid"), layers = [...new Set(heads.map((head) => head.layer))].sort((a, b) => a - b);
  const numbers = [...new Set(heads.map((head) => head.number))].sort((a, b) => a - b);
  grid.style.gridTemplateColumns = `max-content repeat(${numbers.length}, minmax(0.6rem, 2.6rem))`;
  const every = Math.ceil(numbers.length / 16), everyLayer = Math.ceil(layers.length / 32);
  const top = make("div", "row", make("span"), ...numbers.map((number, i) => {
    const name = make("span", "name", i % every ? "" : `H${number}`);
    name.setAttribute("role", "columnheader");
    return name;
  }));
  const places = new Map(heads.map((head) => [`${head.layer},${head.number}`, head]));
  const rows = layers.map((layer, i) => {
    const name = make("span", "name", i % everyLayer ? "" : `L${layer}`);
    name.setAttribute("role", "rowheader");
    return make("div", "row", name, ...numbers.map((number) => cellFor(places.get(`${layer},${number}`))));
  });
  for (const row of [top, ...rows]) row.setAttribute("role", "row");
  grid.replaceChildren(top, ...rows);
}

function cellFor(head) {
  if (!head) return make("span");
  const cell = make("button");
  cell.type = "button";
  cell.tabIndex = -1;
  cell.setAttribute("role", "gridcell");
  cell.dataset.head = head.index;
  cells[head.index] = cell;
  return cell;
}

function cellBeside(from, [down, across]) {
  const here = heads[from];
  const ahead = ({ layer, number }) => (layer - here.layer) * down + (number - here.number) * across;
  const inLine = heads.filter((head) => (down ? head.number === here.number : head.layer === here.layer) && ahead(head) > 0);
  return inLine.sort((a, b) => ahead(a) - ahead(b))[0]?.index ?? from;
}

// ---- both ----

// the chosen score as colours
function paint() {
  const largest = largestOf(state.color), { label } = scores.get(state.color);
  byId("top").textContent = written(state.color, largest);
  for (const { index, name } of heads) {
    const value = valueOf(state.color, index), cell = cells[index];
    const color = value === null ? "" : `rgb(${colorOf(value / largest).join(" ")})`;
    cell.style.background = color;
    cell.classList.toggle("nothing", value === null);
    cell.setAttribute("aria-label", `${name}, ${label} ${written(state.color, value)}`);
    if (dots[index]) dots[index].dot.style.fill = color || "var(--line)";
  }
  const order = [...heads].sort((a, b) => (valueOf(state.color, a.index) ?? -1) - (valueOf(state.color, b.index) ?? -1));
  for (const { index } of order) if (dots[index]) dots[index].dot.parentNode.append(dots[index].dot); // the largest in front
}

function point(head) {
  if (head === pointed) return;
  if (pointed !== null) cells[pointed].classList.remove("near");
  pointed = head;
  if (head !== null) cells[head].classList.add("near");
  drawMarks();
  sayScores(head ?? state.head);
  fetchSoon(head);
}

function sayScores(head) {
  const shown = [...new Set([state.x, state.y, state.color])];
  byId("status").textContent = [heads[head].name, ...shown.map((name) => `${scores.get(name).label} ${written(name, valueOf(name, head))}`)].join(", ");
}

function markChosen() {
  for (const cell of byId("grid").querySelectorAll("[aria-selected]")) {
    cell.removeAttribute("aria-selected");
    cell.tabIndex = -1;
  }
  cells[state.head].setAttribute("aria-selected", "true");
  cells[state.head].tabIndex = 0;
  drawMarks();
  sayScores(state.head);
}

function listenToOverview() {
  const scatter = byId("scatter"), grid = byId("grid");
  const cellOf = (event) => { const cell = event.target.closest("[data-head]"); return cell ? Number(cell.dataset.head) : null; };
  scatter.addEventListener("pointermove", (event) => point(dotAt(event)));
  scatter.addEventListener("pointerleave", () => point(null));
  scatter.addEventListener("click", (event) => { if (dotAt(event) !== null) choose(dotAt(event)); });
  grid.addEventListener("pointerover", (event) => point(cellOf(event)));
  grid.addEventListener("pointerleave", () => point(null));
  grid.addEventListener("click", (event) => { if (cellOf(event) !== null) choose(cellOf(event)); });
  for (const [box, beside] of [[scatter, dotBeside], [grid, cellBeside]]) box.addEventListener("keydown", (event) => {
    if (!STEPS[event.key]) return;
    event.preventDefault();
    choose(beside(state.head, STEPS[event.key]));
    if (box === grid) cells[state.head].focus();
  });
  for (const name of ["x", "y", "color"]) byId(name).addEventListener("change", (event) => {
    state[name] = event.target.value;
    writeFragment();
    redraw();
  });
}

function redraw() {
  drawScatter();
  paint();
  markChosen();
}

function fillChoices() {
  for (const name of ["x", "y", "color"]) {
    byId(name).replaceChildren(...measured.map((score) => {
      const choice = make("option", "", score.label);
      choice.value = score.name;
      return choice;
    }));
    if (!measured.some((score) => score.name === state[name]) && measured.length) state[name] = measured[0].name;
    byId(name).value = state[name];
  }
}
