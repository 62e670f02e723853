// Steps 4 to 7: what the weights carry. The values, their sum, what the head adds to the stream, and what follows.

const norm = (vector) => Math.sqrt(dot(vector, vector));
const plus = (a, b) => a.map((value, i) => value + b[i]);
const minus = (a, b) => a.map((value, i) => value - b[i]);

function valuesStep() {
  const layer = layerNow(), { keys, left } = seenKeys(), weights = weightsOf(state.layer, state.head, spot.query);
  const values = keys.map((key) => rowOf(layer.v, state.head, key, run.keys.length)), parts = keys.map((key, i) => values[i].map((value) => value * weights[key]));
  const z = rowOf(layer.z, state.head, spot.query, run.queries.length), most = largest(...values), mostOfSum = largest(z, ...parts);
  const told = strongest(spot.query).slice(0, 2).map(({ key, value }) => [`${percent(value)} of the value of `, word(keyLabel(key))]);
  return [
    "The weighted sum of the values",
    sentence`${word(queryLabel())} takes ${listed(told)}${strongest(spot.query).length > 2 ? ", and so on" : ""}: each ${term("value")}, what a token passes on, times its weight. Their sum is z.`,
    formula(`v = ${source()}·W_V${biased("v")} ${shape(z.length)}`),
    made("div", { class: "pairs" },
      made("div", {}, made("h4", {}, "the values"), keyList("values", ...keys.map((key, i) => vectorRow("v", keyLabel(key), values[i], most, key))), scaleOf(most)),
      made("div", {}, made("h4", {}, "times their weights"), keyList("values times weights", ...keys.map((key, i) => vectorRow(`${share(weights[key])}·v`, keyLabel(key), parts[i], mostOfSum, key))), scaleOf(mostOfSum))),
    keysLeft(left),
    formula(`z = Σ weight·v ${shape(z.length)}`),
    vectorRow("z", queryLabel(), z, mostOfSum),
  ];
}

function addedStep() {
  const { keys, left } = seenKeys(), added = engine.added(run, state.layer, state.head, spot.query), all = engine.contributions(run, state.layer, state.head, spot.query);
  const parts = keys.map((key) => vectorOf(all, key, run.keys.length)), most = largest(added, ...parts);
  const x = vectorOf(layerNow().x, spot.query, run.queries.length);
  return [
    "What the head adds to the residual stream",
    sentence`The ${term("output projection")} W_O turns z back into ${added.length} numbers, ${term("ΔE")}: what ${headName()} adds to the vector of ${word(queryLabel())}. Each key has its part in it.`,
    formula(`ΔE = z·W_O ${shape(added.length)}`),
    keyList("parts of what is added", ...keys.map((key, i) => vectorRow("from ", keyLabel(key), parts[i], most, key))),
    keysLeft(left),
    vectorRow("ΔE, their sum", null, added, most),
    scaleOf(most),
    made("p", { class: "hint" }, "Its ", term("length"), ` is ${number(norm(added))}; that of the x to which it is added is ${number(norm(x))}.`),
    ...streamRows(["x", x], ["x + ΔE", plus(x, added)]),
    ...(isRemoved(state.layer, state.head) ? [sentence`This head is removed: nothing of it reaches the stream.`] : readings(x, added)),
    ...trajectory(),
  ];
}

const streamRows = (...rows) => rows.map(([name, vector]) => vectorRow(name, null, vector, largest(...rows.map(([, each]) => each))));

function mergedStep() {
  const heads = Array.from({ length: headsOf(state.layer) }, (_, head) => engine.added(run, state.layer, head, spot.query));
  const bias = engine.outputBias(run, state.layer), out = vectorOf(layerNow().attention, spot.query, run.queries.length), most = largest(out, ...heads);
  const rows = heads.map((vector, head) => {
    const row = vectorRow(`ΔE of L${state.layer}H${head}`, null, vector, most), here = head === state.head;
    const chosen = made("button", { type: "button", class: "name", "data-choose": head, "aria-pressed": String(here) }, row.firstChild.textContent);
    row.firstChild.replaceWith(chosen);
    row.classList.toggle("on", here);
    if (isRemoved(state.layer, head)) row.classList.add("removed");
    return row;
  });
  return [
    "Split and merge: all heads of the layer",
    sentence`Layer ${state.layer} has ${heads.length} heads, each with a pattern of its own; what they add to ${word(queryLabel())} is summed${bias ? [", with a ", term("bias")] : ""}. Click one to follow it.`,
    ...rows,
    bias ? vectorRow("b_O", null, bias, most) : null,
    vectorRow("layer’s output", null, out, most),
    scaleOf(most),
    aside(`lengths: ${heads.map((vector, head) => `L${state.layer}H${head} ${number(norm(vector))}`).join(", ")}`),
  ];
}

function restStep() {
  const layer = layerNow(), of = (array) => vectorOf(array, spot.query, run.queries.length), more = engine.about.layers - 1 - state.layer;
  const [x, attention, mlp, after] = [layer.x, layer.attention, layer.mlp, layer.after].map(of), rest = minus(after, plus(plus(x, attention), mlp));
  const rows = [["x", x], ["+ attention", attention], ...(norm(rest) > 1e-3 * norm(after) ? [["+ rest of layer", rest]] : []), ["+ MLP", mlp], ["= x, next", after]], most = largest(...rows.map(([, vector]) => vector));
  const top = run.next && run.next.top(1, 3), ends = more ? `${amount(more, "more layer")} follow${more === 1 ? "s" : ""}.` : "This is the last layer.";
  return [
    "What follows: residual, MLP, next layer, prediction",
    sentence`What attention found is added to the vector of ${word(queryLabel())}, not put in its place: the ${term("residual stream")} goes on. Then an ${term("MLP")} works on each token alone. ${ends}`,
    ...streamRows(...rows),
    scaleOf(most),
    top ? sentence`In the end the vector of the last token, ${word(run.queries.at(-1).label)}, is compared with every token of the vocabulary (its ${term("logit", "logits")}). The likeliest to follow: ${listed(top.map(({ label, probability }) => [word(label), ` (${percent(probability)})`]))}.` : null,
  ];
}

function listenToMerged() {
  byId("steps").addEventListener("click", ({ target }) => {
    const at = target.closest("[data-choose]");
    if (!at) return;
    const { choose: head } = at.dataset;
    choose(state.layer, Number(head));
    document.querySelector(`[data-choose="${head}"]`).focus();
  });
}
