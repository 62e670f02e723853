"use strict";
// What the page is made of: the run of a text, which a worker computes. docs/architecture.md says what a run is.

const LIKELY = 100; // next tokens that a run can name

async function openEngine(data) {
  const source = document.getElementById("worker").textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const { written } = await asked(worker, { packed: document.getElementById("packed").textContent });
  return new Engine(data, worker, written);
}

// one message to the worker, and its answer
function asked(worker, message) {
  return new Promise((done, failed) => {
    worker.onmessage = ({ data: { answer, wrong } }) => wrong === undefined ? done(answer) : failed(new Error(wrong));
    worker.onerror = ({ message }) => failed(new Error(`This page failed: ${message}.`));
    worker.postMessage(message);
  });
}

class Engine {
  #worker; #written; #busy = Promise.resolve(); #latest = 0;

  constructor({ typed, texts, about }, worker, written) {
    Object.assign(this, { typed, texts, about });
    this.#worker = worker;
    this.#written = written;
  }

  // the run of a text, without some heads; null where another one was asked for meanwhile
  async run(text, { removed = [] } = {}) {
    if (removed.length && !this.typed) throw new Error("Heads can be removed only where the page runs the model itself.");
    const number = ++this.#latest, before = this.#busy;
    const target = this.texts.find((each) => each.text === text)?.target || undefined;
    const answer = before.then(() => number === this.#latest ? asked(this.#worker, { request: { text, removed, target } }) : null);
    this.#busy = answer.catch(() => null);
    const run = await answer;
    return run && number === this.#latest ? this.#finished(run, removed) : null;
  }

  #finished({ logits, ...run }, removed) {
    return { ...run, removed, next: logits && new Next(logits, this.#written) };
  }

  // each key's weight times its value and W_O (n_k, d): what the head adds from there
  contributions(run, layer, head, query) {
    const { pattern, written } = run.layers[layer], n_k = run.keys.length, d = this.about.d_model;
    const gone = run.removed.some(([l, h]) => l === layer && h === head);
    const at = (head * run.queries.length + query) * n_k;
    return written.slice(head * n_k * d, (head + 1) * n_k * d).map((value, i) => gone ? 0 : pattern[at + Math.floor(i / d)] * value);
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
    const { text } = this.#written[id];
    return run.text ? run.text + text : text.trimStart();
  }
}

// What may follow, by the logits (V) after the last query.
class Next {
  #logits; #written; #order;

  constructor(logits, written) {
    this.#logits = logits;
    this.#written = written;
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
    return this.#order.slice(0, count).map((id) => ({ id, ...this.#written[id], probability: probabilities[id] }));
  }
}

function softmax(logits, temperature = 1) {
  let most = -Infinity, total = 0;
  for (const logit of logits) most = Math.max(most, logit);
  const powers = logits.map((logit) => Math.exp(logit === most ? 0 : (logit - most) / temperature));
  for (const power of powers) total += power;
  return powers.map((power) => power / total);
}
