"use strict";
// The models written from scratch, as models/scratch/gpt.py and seq2seq.py have them; a test holds them to
// it. Everything is a Float32Array, row after row; vectors are rows (x·W). Letters in the shapes:
//
//   n tokens   n_q queries   n_k keys   d d_model   h heads   d_k width of one head   V vocabulary

// x·W + b: x (n, d_in), W (d_in, d_out), b (d_out) or null give (n, d_out)
function affine(x, n, { weight, bias = null }) {
  const width = x.length / n, columns = weight.length / width, y = new Float32Array(n * columns);
  for (let row = 0; row < n; row++) {
    const out = y.subarray(row * columns, (row + 1) * columns);
    if (bias) out.set(bias);
    for (let i = 0; i < width; i += 4) { // four rows of W at a time: each number of y is touched less often
      const at = row * width + i, left = width - i;
      const a = x[at], b = left > 1 ? x[at + 1] : 0, c = left > 2 ? x[at + 2] : 0, e = left > 3 ? x[at + 3] : 0;
      const first = i * columns, second = left > 1 ? first + columns : first;
      const third = left > 2 ? second + columns : first, fourth = left > 3 ? third + columns : first;
      for (let j = 0; j < columns; j++) {
        out[j] += a * weight[first + j] + b * weight[second + j] + c * weight[third + j] + e * weight[fourth + j];
      }
    }
  }
  return y;
}

// x (n, d) times the rows of a matrix (V, d): (n, V)
function timesRows(x, matrix, d) {
  const n = x.length / d, rows = matrix.length / d, y = new Float32Array(n * rows);
  for (let i = 0; i < n; i++) for (let j = 0; j < rows; j++) y[i * rows + j] = dot(x, i * d, matrix, j * d, d);
  return y;
}

function dot(a, i, b, j, length) {
  let sum = 0;
  for (let k = 0; k < length; k++) sum += a[i + k] * b[j + k];
  return sum;
}

const sum = (a, b) => a.map((value, i) => value + b[i]);

function layerNorm(x, { weight, bias }, epsilon) {
  const d = weight.length, y = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += d) {
    let mean = 0, variance = 0;
    for (let i = 0; i < d; i++) mean += x[at + i] / d;
    for (let i = 0; i < d; i++) variance += (x[at + i] - mean) ** 2 / d;
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < d; i++) y[at + i] = (x[at + i] - mean) * scale * weight[i] + bias[i];
  }
  return y;
}

function mlp(x, n, { c_fc, c_proj }) {
  const gelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  return affine(affine(x, n, c_fc).map(gelu), n, c_proj);
}

// (n, h·d_k) to (h, n, d_k)
function splitHeads(x, n, h) {
  const d_k = x.length / n / h, split = new Float32Array(x.length);
  for (let head = 0; head < h; head++) {
    for (let i = 0; i < n; i++) {
      const at = (i * h + head) * d_k;
      split.set(x.subarray(at, at + d_k), (head * n + i) * d_k);
    }
  }
  return split;
}

// (h, n, d_k) to (n, h·d_k)
function mergeHeads(z, n, h) {
  const d_k = z.length / n / h, merged = new Float32Array(z.length);
  for (let head = 0; head < h; head++) {
    for (let i = 0; i < n; i++) {
      const at = (head * n + i) * d_k;
      merged.set(z.subarray(at, at + d_k), (i * h + head) * d_k);
    }
  }
  return merged;
}

// softmax(q·k / √d_k)·v of each head: q (h, n_q, d_k), k and v (h, n_k, d_k) give scores (h, n_q, n_k), −∞
// under the mask, their softmax pattern, and z (h, n_q, d_k); causal: the queries are the last of the keys
function attend(q, k, v, h, d_k, causal) {
  const n_q = q.length / h / d_k, n_k = k.length / h / d_k;
  const scores = new Float32Array(h * n_q * n_k).fill(-Infinity), pattern = new Float32Array(scores.length);
  const z = new Float32Array(q.length), scale = 1 / Math.sqrt(d_k);
  for (let row = 0; row < h * n_q; row++) {
    const head = Math.floor(row / n_q), seen = causal ? n_k - n_q + row % n_q + 1 : n_k, at = row * n_k;
    let most = -Infinity, total = 0;
    for (let key = 0; key < seen; key++) {
      scores[at + key] = dot(q, row * d_k, k, (head * n_k + key) * d_k, d_k) * scale;
      most = Math.max(most, scores[at + key]);
    }
    for (let key = 0; key < seen; key++) total += Math.exp(scores[at + key] - most);
    for (let key = 0; key < seen; key++) {
      const weight = Math.exp(scores[at + key] - most) / total, value = (head * n_k + key) * d_k;
      pattern[at + key] = weight;
      for (let i = 0; i < d_k; i++) z[row * d_k + i] += weight * v[value + i];
    }
  }
  return { scores, pattern, z };
}

// what each value would add at a weight of 1: v (h, n_k, d_k) times its head's rows of W_O (h·d_k, d): (h, n_k, d)
function writtenValues(v, n_k, h, { weight }) {
  const d_k = v.length / h / n_k, d = weight.length / h / d_k, written = new Float32Array(h * n_k * d);
  for (let head = 0; head < h; head++) {
    const own = v.subarray(head * n_k * d_k, (head + 1) * n_k * d_k);
    const rows = weight.subarray(head * d_k * d, (head + 1) * d_k * d);
    written.set(affine(own, n_k, { weight: rows }), head * n_k * d);
  }
  return written;
}

// what is read (n, d) by W_K and W_V; `kept` has what was made before: all of a source, or what stands in front
function projected(read, matrices, d, isSource, kept) {
  if (isSource && kept?.made) return kept.made;
  const made = matrices.map((each) => affine(read, read.length / d, each)), before = kept?.made;
  const all = before ? made.map((each, i) => Float32Array.of(...before[i], ...each)) : made;
  if (kept) kept.made = all;
  return all;
}

// Attention behind its norm: from the stream x (n_q, d) to itself, or to a source (n_k, d). A head that is
// removed has an output of 0, as with `attnviz ablate`. `kept` has k and v of the positions before x.
function attention(x, norm, weights, { h, epsilon, causal = false, source = null, removed = [], kept = null }) {
  const d = norm.weight.length, d_k = d / h, n_q = x.length / d;
  const normed = layerNorm(x, norm, epsilon), read = source ?? normed;
  const [keys, values] = projected(read, [weights.w_k, weights.w_v], d, source !== null, kept), n_k = keys.length / d; // (n_k, d)
  const q = splitHeads(affine(normed, n_q, weights.w_q), n_q, h); // (h, n_q, d_k)
  const [k, v] = [keys, values].map((each) => splitHeads(each, n_k, h)); // (h, n_k, d_k)
  const { scores, pattern, z } = attend(q, k, v, h, d_k, causal);
  for (const head of removed) z.fill(0, head * n_q * d_k, (head + 1) * n_q * d_k);
  return {
    x, normed, source, q, k, v, scores, pattern, z,
    attention: affine(mergeHeads(z, n_q, h), n_q, weights.w_o), // (n_q, d)
    written: kept ? null : writtenValues(v, n_k, h, weights.w_o), // (h, n_k, d)
    bias: weights.w_o.bias.slice(), // (d)
  };
}

// the MLP behind its norm, added to the stream (n, d)
function withMlp(x, weights, { epsilon }) {
  const added = mlp(layerNorm(x, weights.ln_2, epsilon), x.length / weights.ln_2.weight.length, weights.mlp);
  return { mlp: added, after: sum(x, added) };
}

// a layer of GPT, or of an encoder
function block(x, weights, options) {
  const own = attention(x, weights.ln_1, weights.attn, options);
  return { ...own, ...withMlp(sum(x, own.attention), weights, options) };
}

// a layer of a decoder that reads a source (n_s, d): `kind` says which of its two attentions is told
function decoderBlock(x, weights, source, kind, { removed, kept, ...options }) {
  const without = (of) => ({ removed: kind === of ? removed : [], kept: kept && (kept[of] ??= {}) });
  const own = attention(x, weights.ln_1, weights.attn, { ...options, causal: true, ...without("decoder") });
  const between = sum(x, own.attention);
  const crossed = attention(between, weights.ln_cross, weights.cross, { ...options, source, ...without("cross") });
  const layer = withMlp(sum(between, crossed.attention), weights, options);
  return kind === "cross" ? { ...crossed, ...layer } : { ...own, crossed: crossed.attention, ...layer };
}

// the stream x (n, d) through layers, of which each is told
function through(x, layers, layer) {
  return layers.map((weights, number) => {
    const run = layer(x, weights, number);
    x = run.after;
    return run;
  });
}

const removedIn = (removed, layer) => removed.filter(([l]) => l === layer).map(([, head]) => head);

// the rows of token embeddings (V, d) and those of positions, from the first on; and what arrives, their sum
function embedded(ids, wte, wpe, d, first = 0) {
  const embedding = new Float32Array(ids.length * d), position = wpe.weight.slice(first * d, (first + ids.length) * d);
  ids.forEach((id, i) => embedding.set(wte.weight.subarray(id * d, (id + 1) * d), i * d));
  return { embedding, position, x: sum(embedding, position) };
}

class Gpt {
  constructor(sizes, weights) {
    Object.assign(this, { sizes, weights, options: { h: sizes.n_head, epsilon: sizes.layer_norm_epsilon } });
  }

  // ids (n) to every layer's numbers, and the logits (V) of the token that follows
  run(ids, removed) {
    const { wte, wpe, h, ln_f } = this.weights, d = this.sizes.n_embd;
    const { x, ...parts } = embedded(ids, wte, wpe, d);
    const layers = through(x, h, (x, weights, layer) =>
      block(x, weights, { ...this.options, causal: true, removed: removedIn(removed, layer) }));
    const last = layerNorm(layers.at(-1).after.subarray(-d), ln_f, this.options.epsilon); // (1, d)
    return { ...parts, layers, logits: timesRows(last, wte.weight, d) };
  }
}

class Translator {
  constructor(sizes, weights) {
    Object.assign(this, { sizes, weights, options: { h: sizes.n_head, epsilon: sizes.layer_norm_epsilon } });
  }

  encode(ids, removed = []) {
    const { wte, wpe_source, encoder, ln_encoder } = this.weights;
    const { x, ...parts } = embedded(ids, wte, wpe_source, this.sizes.n_embd);
    const layers = through(x, encoder, (x, weights, layer) =>
      block(x, weights, { ...this.options, removed: removedIn(removed, layer) }));
    return { ...parts, layers, encoded: layerNorm(layers.at(-1).after, ln_encoder, this.options.epsilon) };
  }

  // what is read of the target so far (n_t), from its beginning token on; with `kept`, of each layer, only
  // what is new is read
  decode(read, encoded, kind, removed = [], kept = null) {
    const { wte, wpe_target, decoder, ln_f } = this.weights, d = this.sizes.n_embd;
    const { x, ...parts } = embedded(kept ? read.slice(-1) : read, wte, wpe_target, d, kept ? read.length - 1 : 0);
    const layers = through(x, decoder, (x, weights, layer) =>
      decoderBlock(x, weights, encoded, kind, { ...this.options, removed: removedIn(removed, layer), kept: kept && (kept[layer] ??= {}) }));
    const last = layerNorm(layers.at(-1).after.subarray(-d), ln_f, this.options.epsilon); // (1, d)
    return { ...(kind === "cross" ? {} : parts), layers, logits: timesRows(last, wte.weight, d) };
  }

  // the likeliest target tokens, one after the other
  write(ids, begin) {
    const { encoded } = this.encode(ids), read = [begin], kept = [];
    while (read.length < this.sizes.n_positions) {
      const { logits } = this.decode(read, encoded, "cross", [], kept), next = logits.indexOf(Math.max(...logits));
      if (next === begin) break;
      read.push(next);
    }
    return read.slice(1);
  }
}
