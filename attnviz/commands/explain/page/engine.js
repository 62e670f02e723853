"use strict";
// What the page is made of: the runs of texts, whoever computes them. docs/architecture.md says what a run is.

const LIKELY = 100; // next tokens that a run can name

class Engine {
  constructor({ typed, texts, about }) {
    Object.assign(this, { typed, texts, about });
  }

  // null where a run has the weights of a head, else a promise of whether they have come
  need() {
    return null;
  }

  // draw what may follow the rest
  soon(draw) {
    draw();
  }

  // a head's weights with fewer cells, for a picture of a few pixels; null: as they are
  miniature() {
    return null;
  }

  // each key's weight times its value and W_O (n_k, d): what the head adds from there
  contributions(run, layer, head, query) {
    const { pattern, written } = run.layers[layer], d = this.about.d_model;
    const gone = run.removed.some(([l, h]) => l === layer && h === head), weights = rowOf(pattern, head, query, run.queries.length);
    return ofHead(written, head).map((value, i) => gone ? 0 : weights[Math.floor(i / d)] * value);
  }

  // what the head adds at the query (d), the sum of the contributions
  added(run, layer, head, query) {
    const sum = new Float32Array(this.about.d_model);
    this.contributions(run, layer, head, query).forEach((value, i) => { sum[i % sum.length] += value; });
    return sum;
  }

  // b_O (d), which attention adds beside its heads; null where the model has none
  outputBias(run, layer) {
    return run.layers[layer].bias ?? null;
  }

  // the text with a token's own text behind it; the same text behind a special token
  append(run, id) {
    const text = run.next.written[id]?.text ?? "";
    return run.text ? run.text + text : text.trimStart();
  }
}

// What may follow, by the logits (V) after the last query; `written`: the label and the text of tokens by id.
class Next {
  #logits; #order;

  constructor(logits, written) {
    this.#logits = logits;
    this.written = written;
    this.probabilities = softmax(logits);
  }

  // the ids of the likeliest tokens; to sort all numbers first takes less time than to sort all ids
  #likeliest() {
    const logits = this.#logits, least = logits.slice().sort().at(-LIKELY) ?? -Infinity;
    return [...logits.keys()].filter((id) => logits[id] >= least).sort((a, b) => logits[b] - logits[a] || a - b).slice(0, LIKELY);
  }

  // the likeliest tokens at a temperature; at 0 the first has all
  top(temperature = 1, count = 10) {
    this.#order ??= this.#likeliest();
    const probabilities = temperature === 1 ? this.probabilities : softmax(this.#logits, temperature);
    return this.#order.slice(0, count).map((id) => ({ id, ...this.written[id], probability: probabilities[id] }));
  }
}

function softmax(logits, temperature = 1) {
  let most = -Infinity, total = 0;
  for (const logit of logits) most = Math.max(most, logit);
  const powers = logits.map((logit) => Math.exp(logit === most ? 0 : (logit - most) / temperature));
  for (const power of powers) total += power;
  return powers.map((power) => power / total);
}
