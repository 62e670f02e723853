"use strict";
// The smallest page that shows that the engine works.

(async () => {
  const data = JSON.parse(document.getElementById("data").textContent), at = (id) => document.getElementById(id);
  const list = (id, lines) => at(id).replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  let engine;
  async function show() {
    try {
      const run = await engine.run(at("text").value, { removed: [] });
      if (!run) return;
      const { layer, head } = data.start, n = run.keys.length, query = run.queries.length - 1;
      at("about").textContent = run.queries.map(({ label }) => label).join(" ");
      list("next", run.next.top(1, 8).map(({ label, probability }) => `${label} ${probability.toFixed(4)}`));
      const row = run.layers[layer].pattern.slice((head * run.queries.length + query) * n).slice(0, n);
      list("row", run.keys.map(({ label }, key) => `${label} ${row[key].toFixed(4)}`));
    } catch (error) {
      at("about").textContent = error.message;
    }
    document.body.dataset.ready = "";
  }
  at("text").value = data.texts[0].text;
  try {
    globalThis.engine = engine = await openEngine(data);
  } catch (error) {
    at("about").textContent = error.message;
    return;
  }
  at("text").oninput = show;
  await show();
})();
