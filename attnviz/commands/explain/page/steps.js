// The seven steps of explain, each with one plain sentence; here the first two: from tokens to queries and keys.

// explain's words for the attention of an encoder-decoder, and for what its queries take from
const WHERE = { encoder: " of the encoder", decoder: " of the decoder", cross: " of the cross-attention" };
const FROM = { decoder: "what was written before it", cross: "the text that is read" };
const isCross = () => engine.about.kind === "cross";
const normName = () => engine.about.norm; // empty where it comes after attention
const biased = (letter) => engine.about.biases.includes(letter) ? ` + b_${letter.toUpperCase()}` : "";
const input = () => normName() ? "x̂" : "x"; // of what queries are made
const source = () => isCross() ? "m" : input(); // of what keys and values are made
const STEP_MAKERS = [tokensStep, queriesStep, scoresStep, valuesStep, addedStep, mergedStep, restStep];

function makeSteps() {
  byId("steps").append(...STEP_MAKERS.map((_, i) => {
    const title = made("h3", { id: `step-title-${i + 1}` }, made("i", {}, String(i + 1)), made("span"));
    return made("section", { class: "step", id: `step-${i + 1}`, "aria-labelledby": `step-title-${i + 1}` }, title, made("div", { class: "body" }));
  }));
}

function drawSteps() {
  byId("steps-title").replaceChildren(`How ${headName()}${WHERE[engine.about.kind] ?? ""} computes what `, word(queryLabel()), ` takes from ${FROM[engine.about.kind] ?? "the tokens"}`);
  if (byId("steps").inert = !isWhole()) return; // those of another text or head stay until all numbers are there
  STEP_MAKERS.forEach((make, i) => {
    const section = byId(`step-${i + 1}`), [title, ...body] = make();
    section.querySelector("h3 span").textContent = title;
    section.querySelector(".body").replaceChildren(...body.filter(Boolean));
  });
}

// the lists of keys that a step shows, and how many weaker ones it leaves out
const keysLeft = (left) => left ? aside(`… and ${left} weaker keys.`) : null;

function tokensStep() {
  const query = spot.query, layer = layerNow(), x = vectorOf(layer.x, query, run.queries.length), normed = vectorOf(layer.normed, query, run.queries.length);
  const parts = state.layer === 0 && run.embedding && run.position ? [["embedding", vectorOf(run.embedding, query, run.queries.length)], ["position", vectorOf(run.position, query, run.queries.length)]] : [];
  const rows = [...parts, ["x", x]], most = largest(...rows.map(([, vector]) => vector));
  const begins = state.layer === 0
    ? sentence`Each ${term("token")} becomes a vector of ${x.length} numbers: ${run.embedding && !run.position ? ["its ", term("embedding")] : ["what it is (its ", term("embedding"), ") plus where it stands"]}. This is x of ${word(queryLabel())}.`
    : sentence`${word(queryLabel())} arrives as a vector x of ${x.length} numbers: its ${term("embedding")} and all that earlier layers have added to it, the ${term("residual stream")}.`;
  return [
    isCross() ? "Two texts: one is written and asks, one is read and answers" : state.layer === 0 ? "From tokens to the vectors that attention reads" : `The input of layer ${state.layer}`,
    begins,
    engine.about.kind in FROM ? aside("A query is named by the word that its position writes; its input is the word before.") : null,
    ...rows.map(([name, vector]) => vectorRow(name, queryLabel(), vector, most)),
    scaleOf(most),
    ...(normName() ? [
      formula(`x̂ = ${normName()}(x) ${shape(...[run.queries.length, normed.length])}`),
      sentence`Before attention, each vector is ${term("LayerNorm", "normalised")}, so that all have numbers of the same size: x̂.`,
      vectorRow("x̂", queryLabel(), normed, largest(normed)),
    ] : [sentence`This model has no norm before attention: it reads x as it is.`]),
    isCross() ? sentence`The keys and values are made of m, the output of the ${term("encoder")}, one vector for each token that is read.` : null,
  ];
}

function queriesStep() {
  const layer = layerNow(), { keys, left } = seenKeys(), asks = word(queryLabel());
  const q = rowOf(layer.q, state.head, spot.query, run.queries.length), vectors = keys.map((key) => rowOf(layer.k, state.head, key, run.keys.length));
  const most = largest(q), mostOfKeys = largest(...vectors);
  return [
    "The query asks, the keys answer",
    sentence`${asks} turns its vector into a ${term("query")}, what it looks for in other tokens. Every token that it may attend to offers a ${term("key")}, what it can be found by. Two ${term("projection", "projections")}, W_Q and W_K, make them.`,
    formula(`q = ${input()}·W_Q${biased("q")} ${shape(q.length)}`),
    vectorRow("q", queryLabel(), q, most),
    formula(`k = ${source()}·W_K${biased("k")} ${shape(q.length)}`),
    keyList("keys", ...keys.map((key, i) => vectorRow("k", keyLabel(key), vectors[i], mostOfKeys, key))),
    keysLeft(left),
    scaleOf(mostOfKeys),
  ];
}
