// The engine of a page that computes its runs in a worker.

async function openEngine(data) {
  const source = document.getElementById("worker").textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const { written } = await asked(worker, { packed: document.getElementById("packed").textContent });
  return new Local(data, worker, written);
}

// one message to the worker, and its answer
function asked(worker, message) {
  return new Promise((done, failed) => {
    worker.onmessage = ({ data: { answer, wrong } }) => wrong === undefined ? done(answer) : failed(new Error(wrong));
    worker.onerror = ({ message }) => failed(new Error(`This page failed: ${message}.`));
    worker.postMessage(message);
  });
}

class Local extends Engine {
  #worker; #written; #busy = Promise.resolve(); #latest = 0;

  constructor(data, worker, written) {
    super(data);
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
}
