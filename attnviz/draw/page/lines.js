// Two columns of tokens, with lines from query to key. The page has the state: `spot`, `aimed`, `patterns`, `labelsOf`,
// `tokenName`, `weight`, `shown`, `full`, `endOf`, what `aim` and `pin` do, and of `state` the threshold and the unit.

const ROW = 20, MOST_LINES = 600, BESIDE = 8; // pixels a token; lines without a token; pixels beside labels
const same = (a, b) => a && b && a.side === b.side && a.index === b.index && endOf(a) === endOf(b);
const across = (side) => side === "q" ? "k" : "q";
let columns = null; // the names, which stay while heads come and go, and the lines between them

function drawColumns() {
  const width = Math.max(320, Math.min(640, byId("columns").clientWidth)), at = spot;
  if (!columns || columns.width !== width || columns.unit !== state.unit) columns = makeColumns(width);
  const { links, of } = linksOf(at && at.token);
  const isPair = ({ query, key }) => at && at.other !== null && (at.token.side === "q" ? key : query) === at.other;
  columns.lines.replaceChildren(...links.map((link) => element("line", {
    x1: columns.left, y1: ROW * (link.query + 0.5) + 4 + link.aside, x2: columns.right, y2: ROW * (link.key + 0.5) + 4 + link.aside,
    stroke: link.color, "stroke-width": isPair(link) ? 4 : 1.5, "stroke-opacity": Math.min(1, link.value / full()).toFixed(3),
  })));
  const many = links.length < of ? `the strongest ${links.length} of ` : "";
  const least = state.threshold ? `, of at least ${state.threshold.toFixed(2)}` : "";
  byId("drawn").textContent = `lines: ${many}${of.toLocaleString("en")} link${of === 1 ? "" : "s"}${at ? ` of “${tokenName(at.token)}”` : ""}${least}`;
  for (const name of columns.on) name.classList.remove("on", "other");
  columns.on = [];
  if (!at) return;
  const mark = (names, kind) => names.forEach((name) => {
    name.classList.add(kind);
    columns.on.push(name);
  });
  mark(columns.names[at.token.side].slice(at.token.index, endOf(at.token)), "on");
  if (at.other !== null) mark(columns.names[across(at.token.side)].slice(at.other, at.other + 1), "other");
}

function makeColumns(width) {
  const queries = labelsOf("queries"), keys = labelsOf("keys");
  const height = ROW * Math.max(queries.length, keys.length) + 8;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "queries on the left, keys on the right" });
  pen.font = "bold " + fontOf(SIZES[1]); // as wide as a label that is marked
  const wide = (labels) => Math.ceil(Math.min(width * 0.38, Math.max(...labels.map((label) => pen.measureText(label).width))));
  const [ofQueries, ofKeys] = [wide(queries), wide(keys)];
  // the lines have the middle, between labels that are about as long
  const left = Math.max(ofQueries + 2 * BESIDE, width * 0.3), right = Math.min(width - ofKeys - 2 * BESIDE, width * 0.7);
  const named = (labels, side, x, anchor, most) => labels.map((label, index) => {
    const name = element("text", { x, y: ROW * (index + 0.5) + 8, "text-anchor": anchor, "data-side": side, "data-index": index }, clipped(label, most));
    name.append(element("title", {}, label));
    return name;
  });
  const names = {
    q: named(queries, "q", left - BESIDE, "end", left - 2 * BESIDE),
    k: named(keys, "k", right + BESIDE, "start", width - right - 2 * BESIDE),
  };
  const lines = element("g", {});
  svg.append(lines, ...names.q, ...names.k);
  byId("columns").replaceChildren(svg);
  return { width, left, right, unit: state.unit, names, lines, on: [] };
}

// The links of a token that are shown, or the strongest of all; `of` is how many there are.
function linksOf(token) {
  const found = [];
  const visit = (take) => patterns.forEach((pattern, i) => {
    const [q, k] = ["q", "k"].map((side) => token && token.side === side ? [token.index, endOf(token)] : [0, side === "q" ? pattern.rows : pattern.columns]);
    for (let query = q[0]; query < q[1]; query++) for (let key = k[0]; key < k[1]; key++) {
      const value = weight(pattern, query, key);
      if (shown(value)) take(query, key, value, i);
    }
  });
  const values = [];
  visit((_query, _key, value) => values.push(value));
  const least = token || values.length <= MOST_LINES ? -1 : Float32Array.from(values).sort()[values.length - MOST_LINES];
  visit((query, key, value, i) => {
    const aside = 3 * (i - (patterns.length - 1) / 2); // heads on one link stand beside each other
    if (value >= least) found.push({ query, key, value, color: patterns[i].color, aside });
  });
  const links = found.sort((a, b) => a.value - b.value); // the strongest is drawn last
  return { links: token ? links : links.slice(-MOST_LINES), of: values.length };
}

// a token and, where both fit, the other one come into view
function centre({ token, other }) {
  const box = byId("columns"), place = (index) => ROW * (index + 0.5) + 4, high = box.clientHeight;
  const inView = (index) => place(index) > box.scrollTop + ROW / 2 && place(index) < box.scrollTop + high - ROW / 2;
  const ends = other !== null && Math.abs(place(token.index) - place(other)) < high - ROW ? [token.index, other] : [token.index];
  if (!ends.every(inView)) box.scrollTop = ends.reduce((sum, index) => sum + place(index) / ends.length, 0) - high / 2;
}

const tokenOf = (target) => target.dataset && target.dataset.side ? { side: target.dataset.side, index: Number(target.dataset.index), after: Number(target.dataset.after) } : null;

function listenToColumns() {
  const box = byId("columns");
  const at = (token) => token && { token, other: null };
  box.addEventListener("pointerover", (event) => {
    const token = tokenOf(event.target);
    if (token && !(aimed && same(token, aimed.token))) aim(at(token));
  });
  box.addEventListener("pointerleave", () => aim(null));
  box.addEventListener("blur", () => aim(null));
  box.addEventListener("click", (event) => {
    const token = tokenOf(event.target);
    if (token) pin(token);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") pin(aimed && aimed.token);
    else if (event.key === "Escape") pin(null);
    else if (STEPS[event.key]) {
      const [down, sideways] = STEPS[event.key], { side, index } = (spot || { token: { side: "q", index: -down } }).token;
      const to = sideways < 0 ? "q" : sideways > 0 ? "k" : side, most = columns.names[to].length - 1;
      aim(at({ side: to, index: Math.max(0, Math.min(most, index + down)) }));
      centre(aimed);
    } else return;
    event.preventDefault();
  });
}
