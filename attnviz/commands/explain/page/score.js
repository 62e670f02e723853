// Step 3: q and k of one key, their products number by number, the sum, and the row of all scores.

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const widthOfHead = () => ofHead(layerNow().q, state.head).length / run.queries.length;
const factor = () => layerNow().scale ?? widthOfHead() ** -0.5;

// q·k, times the factor, what is compared in the end (−∞ under the mask), and the weight
function scored(key) {
  const layer = layerNow(), q = rowOf(layer.q, state.head, spot.query, run.queries.length), k = rowOf(layer.k, state.head, key, run.keys.length);
  const product = dot(q, k), score = scoresOf(spot.query)[key];
  return { q, k, product, scaled: product * factor(), score, weight: weightsOf(state.layer, state.head, spot.query)[key] };
}

// `÷ √32`, or the factor that this model has
function divided() {
  const width = widthOfHead();
  if (Math.abs(factor() - 1) < 1e-6) return "unscaled";
  return Math.abs(factor() * Math.sqrt(width) - 1) < 1e-4 ? `÷ √${width}` : `× ${factor().toPrecision(3)}`;
}

function scoresStep() {
  const { keys, left } = seenKeys(), hidden = run.keys.map((_, key) => key).filter((key) => isMasked(spot.query, key));
  const shownKeys = [...keys, ...hidden.slice(0, MOST_KEYS)].sort((a, b) => a - b), rows = shownKeys.map((key) => ({ key, ...scored(key) }));
  const differs = rows.some(({ scaled, score }) => score !== -Infinity && Math.abs(scaled - score) > 1e-3 * Math.max(1, Math.abs(score)));
  const columns = [["q·k", "product"], [divided(), "scaled"], ...(differs || hidden.length ? [[differs ? "+ bias" : "masked", "score"]] : []), ["softmax", "weight"]];
  const head = made("div", { class: "head", "aria-hidden": "true" }, made("span", {}, "key"), ...columns.map(([name]) => made("span", {}, name)));
  return [
    hidden.length || engine.about.causal ? "Scores, mask, softmax" : "Scores, no mask, softmax",
    sentence`A ${term("score")} says how well each key matches the query of ${word(queryLabel())}. ${term("softmax", "Softmax")} turns the row of scores into ${term("weight", "weights")} that sum to 1.${hidden.length ? [" The ", term("mask"), " sets later keys to −∞, which softmax turns into 0."] : ""}`,
    formula(`scores = q·kᵀ ${divided().replace("unscaled", "")}`),
    made("div", { class: "beside" },
      made("div", {}, keyListOf(head, rows, columns), keysLeft(left), hidden.length > MOST_KEYS ? aside(`… and ${hidden.length - MOST_KEYS} more masked keys.`) : "", aside("Point at a key, or reach it with the arrow keys, to see its product.")),
      made("div", { id: "product", "aria-live": "off" })),
  ];
}

function keyListOf(head, rows, columns) {
  const list = keyList("scores of all keys", ...rows.map((row) => {
    const bar = made("i"), masked = row.score === -Infinity;
    bar.style.setProperty("--share", row.weight);
    return made("div", { class: masked ? "scored masked" : "scored", role: "option", tabindex: -1, "data-key": row.key }, bare(keyLabel(row.key)), ...columns.map(([, name]) => made("span", {}, number(row[name]))), bar);
  }));
  const table = made("div", { class: "table" }, head, list);
  table.style.setProperty("--columns", columns.length);
  return table;
}

const PRODUCT_TALL = 64; // pixels of the bars, half of them below zero

// The products as bars from the middle: up and red above zero, down and blue below.
function productBars(products) {
  const most = largest(products), half = PRODUCT_TALL / 2;
  const svg = element("svg", { viewBox: `0 0 ${products.length} ${PRODUCT_TALL}`, preserveAspectRatio: "none", role: "img", "aria-label": `products: ${amount(products.length, "number")}` });
  products.forEach((value, i) => {
    const height = Math.abs(value) / most * half;
    svg.append(element("rect", { x: i + 0.08, width: 0.84, y: value > 0 ? half - height : half, height, fill: `rgb(${signed(Math.sign(value)).join(" ")})` }));
  });
  svg.append(element("line", { x1: 0, x2: products.length, y1: half, y2: half }), element("rect", { class: "cursor", width: 1, height: PRODUCT_TALL, x: -2 }));
  return svg;
}

// the key that is pointed at: everything between its vector and its weight
function drawProduct() {
  const key = spot.key, { q, k, product, scaled, score, weight } = scored(key), products = q.map((value, i) => value * k[i]);
  const [up, down] = [products.filter((v) => v > 0), products.filter((v) => v < 0)], sum = (values) => values.reduce((a, b) => a + b, 0);
  const lane = (name, drawn) => [made("span", { class: "name" }, ...name), drawn];
  const box = byId("product"), masked = score === -Infinity;
  box.replaceChildren(
    made("h4", {}, word(queryLabel()), " asks ", word(keyLabel(key))),
    made("div", { class: "lanes", tabindex: 0, role: "group", "aria-label": "q, k and their products: arrow keys move from number to number" },
      ...lane(["q"], strip(q, largest(q), `q(${queryLabel()})`)), ...lane(["k"], strip(k, largest(k), `k(${keyLabel(key)})`)), ...lane(["q×k"], productBars(products))),
    made("p", { id: "factor", class: "hint", role: "status" }, "Each bar is one number of q times the number of k below it."),
    sentence`${up.length} products are above zero (${number(sum(up))}) and ${down.length} below (${number(sum(down))}). Their sum is the ${term("dot product")} q·k:`,
    made("p", { class: "chain" },
      link("sum", number(product)), divided() === "unscaled" ? "" : link(divided(), number(scaled)), masked ? link("mask", "−∞") : Math.abs(scaled - score) > 1e-3 ? link("+ bias", number(score)) : "", link("softmax", number(weight), weight)),
    aside(masked ? "This key stands later in the text: the mask hides it." : softmaxSaid(score)),
  );
}

// e to the score and the sum of these, unless one is too large to be a number
function softmaxSaid(score) {
  const power = Math.exp(score), total = scoresOf(spot.query).reduce((sum, each) => sum + Math.exp(each), 0), few = (value) => value.toPrecision(4);
  const [one, all] = Number.isFinite(total) && total > 0 ? [` = ${few(power)}`, `${few(total)}, `] : ["", ""];
  return `Softmax: e^${number(score, 3)}${one}, divided by ${all}the sum of this over all keys.`;
}

function link(name, value, weight = null) {
  const box = made("span", { class: "link" }, made("small", {}, name), made("b", {}, value));
  if (weight !== null) {
    const bar = made("i");
    bar.style.setProperty("--share", weight);
    box.append(bar);
  }
  return box;
}

// which of the products the pointer or the arrows are at
let factorAt = -1;

function showFactor(index) {
  const { q, k } = scored(spot.key);
  factorAt = Math.max(0, Math.min(q.length - 1, index));
  document.querySelector("#product .cursor").setAttribute("x", factorAt);
  byId("factor").textContent = `number ${factorAt}: ${number(q[factorAt])} × ${number(k[factorAt])} = ${number(q[factorAt] * k[factorAt])}`;
}

function listenToProduct() {
  byId("steps").addEventListener("pointermove", (event) => {
    const lanes = event.target.closest("#product .lanes");
    if (!lanes) return;
    const room = lanes.querySelector("svg").getBoundingClientRect(), many = scored(spot.key).q.length;
    if (event.clientX >= room.left) showFactor(Math.floor((event.clientX - room.left) / room.width * many));
  });
  byId("steps").addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!event.target.closest("#product .lanes") || !step || !step[1]) return;
    event.preventDefault();
    showFactor(factorAt + step[1]);
  });
}
