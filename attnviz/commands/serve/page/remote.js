// The engine of a page whose runs a server computes, in parts: docs/architecture.md says what each holds.

let asked = 0; // requests, whose order the server may see otherwise
const VIEW = Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => byte.toString(36)).join(""); // of whose requests only the newest counts
const ARRAYS = { f4: Float32Array, f2: (buffer) => Float32Array.from(new Uint16Array(buffer), ofHalf), u1: Uint8Array };
const SIZES_OF = { f4: 4, f2: 2, u1: 1 };

async function openEngine(data) {
  const engine = new Remote(data);
  if (!data.live.asks) listenToKernel();
  makeLive(engine);
  return engine;
}

// a part: its facts, and its arrays by name
function unpackedPart(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true), facts = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  const arrays = facts.arrays.map(([name, type, size]) => {
    const buffer = bytes.slice(at, at + size * SIZES_OF[type]).buffer;
    at += buffer.byteLength + (-buffer.byteLength & 3);
    return [name, type === "f2" ? ARRAYS.f2(buffer) : new ARRAYS[type](buffer)];
  });
  return { ...facts, arrays: Object.fromEntries(arrays) };
}

// ---- a notebook's kernel, which the cell asks for this frame ----

const waiting = new Map(); // by the number of a question: what takes each message of its answer

function listenToKernel() {
  addEventListener("message", ({ data, source }) => {
    if (source === window.parent && data?.attnvizTells) waiting.get(data.attnvizTells.id)?.(data.attnvizTells);
  });
}

// the messages that answer a question; at last one that ends them
async function* toldByKernel(question, signal) {
  const id = crypto.getRandomValues(new Uint32Array(1))[0], told = [], ask = (message) => window.parent.postMessage({ attnvizAsks: { id, ...message } }, "*");
  let wake = () => {};
  waiting.set(id, (message) => { told.push(message); wake(); });
  signal?.addEventListener("abort", () => { ask({ gone: true }); told.push({ ends: true }); wake(); });
  ask(question);
  try {
    for (;;) {
      while (!told.length) await new Promise((done) => { wake = done; });
      const message = told.shift();
      if (message.wrong) throw new Error(message.wrong);
      if (message.ends) return;
      yield message.part;
    }
  } finally {
    waiting.delete(id);
  }
}

// ---- a server ----

// the parts of an answer, as they come
async function* partsFrom(path, content, signal) {
  if (!data.live.asks) {
    for await (const part of toldByKernel({ path, content }, signal)) yield unpackedPart(part.subarray(4));
    return;
  }
  const reader = (await answerOf(path, content, { signal })).body.getReader();
  let held = new Uint8Array(0);
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    const more = new Uint8Array(held.length + value.length);
    more.set(held);
    more.set(value, held.length);
    held = more;
    while (held.length >= 4) {
      const end = 4 + new DataView(held.buffer, held.byteOffset).getUint32(0, true);
      if (held.length < end) break;
      yield unpackedPart(held.subarray(4, end));
      held = held.subarray(end);
    }
  }
}

// an answer of the server, or the sentence that it refuses with
async function answerOf(path, content, { signal, accept = "application/json" } = {}) {
  if (!data.live.asks) {
    const parts = [];
    for await (const part of toldByKernel({ path, content, accept }, signal)) parts.push(part);
    return new Response(new Blob(parts));
  }
  let answer;
  try {
    answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json", accept }, body: JSON.stringify(content), signal });
  } catch (error) {
    throw signal?.aborted ? error : new Error("The server has ended: start attnviz serve again.");
  }
  if (answer.ok) return answer;
  const said = await answer.text();
  try {
    throw new Error(JSON.parse(said).error);
  } catch (error) {
    throw error instanceof SyntaxError ? new Error(said.trim()) : error;
  }
}

// when what has arrived is drawn: the model, which runs on this computer, leaves the browser time for it
const drawn = () => new Promise((go) => { requestAnimationFrame(() => setTimeout(go)); setTimeout(go, 500); });

class Remote extends Engine {
  inputs = {}; // what is read beside the text, as the server takes it
  #running = new AbortController(); #asking = new AbortController();
  #arriving = null; #asked = ""; // the layers of the run whose parts still come; the head that was asked for

  constructor({ model, ...data }) {
    super(data);
    this.model = model;
  }

  request(text) {
    return { model: this.model, text, number: ++asked, ...this.inputs };
  }

  // the run of a text, of which the rest arrives later; null where another one was asked for meanwhile
  async run(text, { removed = [] } = {}) {
    if (removed.length) return this.#without(text, removed);
    this.#running.abort();
    this.#asking.abort();
    const { signal } = this.#running = new AbortController(), head = [state.layer, state.head], picks = state.auto;
    const question = { ...this.request(text), view: VIEW, head, picks }, first = await this.#first(partsFrom("run", question, signal), signal);
    if (!first) return null;
    const run = this.#runOf(first);
    [this.#arriving, this.#asked] = [run.layers, ""];
    drawn().then(drawn).then(() => signal.aborted ? null : this.#follow(run, partsFrom("rest", question, signal), signal)).then(() => {
      if (this.#arriving === run.layers) this.#arriving = null;
      if (!signal.aborted) settled(run);
    });
    return run;
  }

  // the first part that is no progress; null where it was given up
  async #first(parts, signal) {
    try {
      for (let { value, done } = await parts.next(); !done; { value, done } = await parts.next()) {
        if (value.part === "wrong") throw new Error(value.wrong);
        if (value.part !== "progress") return value;
        tellProgress(value);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return null;
  }

  async #follow(run, parts, signal) {
    try {
      for await (const part of parts) {
        if (signal.aborted) return;
        if (part.part === "wrong") throw new Error(part.wrong);
        this.#take(run, part);
        arrived(run, part);
      }
    } catch (error) {
      if (!signal.aborted) tellProblem(error.message);
    }
  }

  #runOf({ arrays, written, ...facts }) {
    const empty = () => ({ pattern: [], scores: [], q: [], k: [], v: [], z: [], written: [], outputs: [] });
    const run = { keys: facts.queries, ...facts, removed: [], layers: this.about.headsPerLayer.map(empty), next: arrays.logits ? new Next(arrays.logits, written) : null };
    this.#takeArrays(run, arrays);
    return run;
  }

  #takeArrays(run, arrays) {
    for (const [name, array] of Object.entries(arrays)) {
      const [kind, layer, head] = name.split(".");
      if (kind === "pattern") run.layers[layer].pattern[head] = array;
      if (kind === "small") run.layers[layer].small = array;
    }
  }

  #take(run, { part, arrays, ...facts }) {
    if (part === "head") this.#takeArrays(run, arrays);
    if (part === "reads") for (const [name, keys] of Object.entries(facts.rests)) {
      const [, layer, head] = /^L(\d+)H(\d+)$/.exec(name);
      (run.layers[layer].rests ??= {})[head] = keys;
    }
    if (part !== "layer" || facts.wrong) return;
    const [number, head] = facts.head, layer = run.layers[number], { outputs, embedding, position, ...own } = arrays;
    Object.assign(this.about, facts.about);
    Object.assign(run, { embedding: embedding ?? run.embedding, position: position ?? run.position });
    for (const [name, array] of Object.entries(own)) if (Array.isArray(layer[name])) layer[name][head] = array;
      else layer[name] = array;
    Object.assign(layer, { scale: facts.scale, outputs });
  }

  // the same run with the prediction that the model makes without some heads
  async #without(text, removed) {
    const signal = this.#running.signal, part = await this.#first(partsFrom("without", { ...this.request(text), view: `${VIEW}-without`, removed }, signal), signal);
    return part && { ...whole, layers: whole.layers, next: new Next(part.arrays.logits, part.written) };
  }

  // a head's weights, and behind them its layer in full
  need(run, layer, head) {
    const there = run.layers[layer].pattern[head] !== undefined, name = nameOf([layer, head]) + run.text;
    if (there && (run.layers[layer].scores[head] || this.#asked === name || this.#arriving === run.layers)) return null;
    this.#asking.abort();
    const { signal } = this.#asking = new AbortController();
    this.#asked = name;
    const parts = partsFrom("head", { ...this.request(run.text), view: `${VIEW}-head`, head: [layer, head] }, signal);
    if (there) {
      this.#follow(run, parts, signal);
      return null;
    }
    return this.#first(parts, signal).then((part) => {
      if (!part) return false;
      this.#take(run, part);
      this.#follow(run, parts, signal);
      return true;
    }, (error) => tellProblem(error.message));
  }

  // all heads are many: the rest of the page does not wait for them
  soon(draw) {
    requestAnimationFrame(() => setTimeout(draw));
  }

  miniature(run, layer, head) {
    const { small } = run.layers[layer];
    if (!small) return null;
    const cells = (n) => Math.ceil(n / Math.ceil(n / THUMBNAIL)), [rows, columns] = [cells(run.queries.length), cells(run.keys.length)];
    return { rows, columns, values: Float32Array.from(small.subarray(head * rows * columns, (head + 1) * rows * columns), (level) => level / 255) };
  }

  added(run, layer, head, query) {
    return rowOf(run.layers[layer].outputs, head, query, run.queries.length);
  }
}

const THUMBNAIL = 32; // cells along a side of a miniature, at most
