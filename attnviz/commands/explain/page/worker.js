"use strict";
// The worker: it unpacks a model, or runs that Python made, and gives the run of a text.

const DAMAGED = "This page is damaged: its numbers are not those that were written. Make it again.";
let opened; // a promise of something that has run(request)

// The package of `packed_arrays` in draw/page: facts, and arrays by their dotted names. gzip itself checks a
// sum and a length, so that no number of a page that was cut or changed is ever shown.
async function unpacked(text) {
  try {
    const letters = atob(text), bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const buffer = await new Response(stream).arrayBuffer(), begins = 4 + new DataView(buffer).getUint32(0);
    const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, begins - 4)));
    return { facts, arrays: nested(facts.arrays, numbersOf(new Uint8Array(buffer, begins), facts.bytes)) };
  } catch {
    throw new TextError(DAMAGED);
  }
}

// numbers of 4 or 2 bytes each, of which all first bytes stand before all second ones
function numbersOf(planes, size) {
  const n = planes.length / size, bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0; i < n; i++) bytes[i * size + plane] = planes[plane * n + i];
  }
  return size === 4 ? new Float32Array(bytes.buffer) : Float32Array.from(new Uint16Array(bytes.buffer), ofHalf);
}

// [["h.0.ln_1.weight", 128], …] and their numbers to {h: [{ln_1: {weight}}, …], …}
function nested(names, numbers) {
  const root = {};
  let at = 0;
  for (const [name, length] of names) {
    const path = name.split("."), last = path.pop();
    let place = root;
    path.forEach((step, i) => { place = place[step] ??= /^\d+$/.test(path[i + 1] ?? last) ? [] : {}; });
    place[last] = numbers.slice(at, at += length);
  }
  return root;
}

// A GPT and its tokenizer.
class SelfRuns {
  constructor({ sizes, tokenizer }, weights) {
    Object.assign(this, { model: new Gpt(sizes, weights), tokenizer: new Tokenizer(tokenizer) });
    this.written = this.tokenizer.written(sizes.vocab_size);
  }

  run({ text, removed }) {
    const tokens = this.tokenizer.encode(text);
    return { text, target: "", queries: tokens, keys: tokens, ...this.model.run(tokens.map(({ id }) => id), removed) };
  }
}

// An encoder-decoder, its tokenizer, and which of its attentions is shown.
class PairRuns {
  constructor({ sizes, tokenizer, kind, end, words }, weights) {
    Object.assign(this, { kind, end, words: new Set(words), model: new Translator(sizes, weights), tokenizer: new Tokenizer(tokenizer) });
    this.written = this.tokenizer.written(sizes.vocab_size);
  }

  // each query is named by the token that its position writes, and has read the one before
  run({ text, removed, target }) {
    const { kind, end, model, tokenizer } = this, source = tokenizer.encode(text), ids = source.map(({ id }) => id);
    if (kind === "encoder") {
      const { encoded, ...run } = model.encode(ids, removed);
      return { text, target: "", unknown: this.unknown(text, ""), queries: source, keys: source, logits: null, ...run };
    }
    target ??= this.translated(model.write(ids, end));
    const written = tokenizer.cut(target), begin = { id: -1, start: 0, end: 0, special: true };
    if (!written.length) throw new TextError("The model writes nothing for this text: type another one.");
    if (written.length > tokenizer.context) throw tokenizer.tooLong("is answered by a longer one");
    const read = [end, ...written.slice(0, -1).map(({ id }) => id)];
    const queries = tokenizer.labelled(written, target);
    const keys = kind === "cross" ? source : tokenizer.labelled([begin, ...written.slice(0, -1)], target);
    return { text, target, unknown: this.unknown(text, target), queries, keys, ...model.decode(read, model.encode(ids).encoded, kind, removed) };
  }

  // the words that the model was not trained on, as `unknown_words` in models/scratch/translator.py tells them
  unknown(text, target) {
    const { words, tokenizer } = this, cut = (of) => new Set(Array.from(of.matchAll(tokenizer.pieces), ([piece]) => piece.trim()));
    const knows = (word) => words.has(word) || words.has(word.replace(/^./u, (first) => first.toLowerCase()));
    const copied = cut(target), isCopied = (word) => /^\p{Uppercase}/u.test(word) && (!target || copied.has(word));
    return words.size ? [...cut(text)].filter((word) => /[\p{L}\p{N}]/u.test(word) && !knows(word) && !isCopied(word)) : [];
  }

  // a text without meaning can be read as more tokens than were written
  translated(ids) {
    const text = spaced(this.tokenizer.decode(ids)), excess = this.tokenizer.cut(text).length - this.tokenizer.context;
    return excess > 0 ? this.translated(ids.slice(0, -excess)) : text;
  }
}

// spaces as a person writes French: l'arbre, où est-il ?
const spaced = (text) => text.trim().replace(/\s+([.,]|-[\p{L}\p{N}_])/gu, "$1").replace(/(?<=['’])\s+/g, "");

// Runs that Python made, by text.
class MadeRuns {
  constructor({ runs, written }, { runs: numbers }) {
    this.written = written;
    this.runs = new Map(runs.map(({ scales, ...run }, i) => {
      const layers = numbers[i].layers.map((layer, at) => ({ source: null, ...layer, scale: scales[at] }));
      return [run.text, { keys: run.queries, ...run, logits: null, embedding: null, position: null, ...numbers[i], layers }];
    }));
  }

  run({ text }) {
    const run = this.runs.get(text);
    if (!run) throw new TextError("This page holds the runs of its own texts alone.");
    return structuredClone(run);
  }
}

const KINDS = { gpt: SelfRuns, pair: PairRuns, runs: MadeRuns };

async function open(text) {
  const { facts, arrays } = await unpacked(text);
  return new KINDS[facts.made](facts, arrays);
}

// every buffer of a run, which goes over without a copy
function* buffersOf(value) {
  if (value instanceof Float32Array) yield value.buffer;
  else if (value && typeof value === "object") for (const inner of Object.values(value)) yield* buffersOf(inner);
}

onmessage = async ({ data: { packed, request } }) => {
  try {
    if (packed !== undefined) {
      opened = open(packed);
      postMessage({ answer: { written: (await opened).written } });
    } else {
      const answer = (await opened).run(request);
      postMessage({ answer }, [...new Set(buffersOf(answer))]);
    }
  } catch (error) {
    postMessage({ wrong: error instanceof TextError ? error.message : `This page failed: ${error.message}.` });
  }
};
