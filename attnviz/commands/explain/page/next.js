// What comes next: the likeliest tokens as bars, with every head and without those that are removed.

const MOST_NEXT = 8, MOST_COMPARED = 6;

// whether a token that comes next can be written behind the text
const writes = () => engine.typed && isSelf();

// the probability of a token at the temperature that is set: p^(1/T), brought to a sum of 1
function probabilityAt(of, temperature) {
  const { probabilities } = of.next;
  if (temperature === 1) return (id) => probabilities[id];
  let sum = 0;
  for (const p of probabilities) sum += p ** (1 / temperature);
  return (id) => probabilities[id] ** (1 / temperature) / sum;
}

// the likeliest, and where heads are removed also those that were likeliest with them
function likeliest() {
  const found = run.next.top(state.temperature, MOST_NEXT);
  if (!before) return found;
  const first = before.next.top(state.temperature, MOST_COMPARED / 2), more = found.filter(({ id }) => !first.some((one) => one.id === id));
  return [...first, ...more.slice(0, MOST_COMPARED - first.length)];
}

function drawNext() {
  byId("next").hidden = !run.next;
  if (!run.next) return;
  const tokens = likeliest(), now = probabilityAt(run, state.temperature), then = before && probabilityAt(before, state.temperature);
  byId("temperature-value").textContent = state.temperature.toFixed(1);
  const last = word(run.queries.at(-1).label);
  byId("next-of").replaceChildren(...(isSelf() ? sentence`The token after ${last}, with probability:` : sentence`Predicted where ${last} is written, with probability:`).childNodes);
  const lines = byId("likeliest");
  while (lines.children.length < tokens.length) lines.append(made("li", {}, made("button", { type: "button" })));
  while (lines.children.length > tokens.length) lines.lastChild.remove();
  tokens.forEach((token, i) => drawBar(lines.children[i].firstChild, token, now(token.id), then && then(token.id)));
  const [top] = run.next.top(state.temperature, 1);
  byId("writing").hidden = !writes();
  byId("write-next").replaceChildren("write ", word(top.label));
  byId("write-next").disabled = !top.text; // the end of the text
  byId("compared").hidden = !before;
}

function drawBar(button, token, now, then) {
  const [bar, ghost] = [made("i"), made("i", { class: "before" })];
  bar.style.setProperty("--share", now);
  if (then !== null) ghost.style.setProperty("--share", then);
  const change = then === null ? "" : `${now < then ? "−" : "+"}${Math.abs(Math.log(now / then)).toFixed(2)} nats`;
  button.replaceChildren(bare(token.label), made("span", { class: "bars" }, ...(then === null ? [] : [ghost]), bar), made("b", {}, number(now)), ...(then === null ? [] : [made("small", {}, `before ${number(then)} · ${change}`)]));
  button.dataset.id = token.id;
  button.disabled = !writes() || !token.text;
  button.setAttribute("aria-label", `${token.label}, probability ${number(now)}${then === null ? "" : `, before ${number(then)}, ${change}`}${button.disabled ? "" : "; write it"}`);
}

// the text with a token behind it
function write(id) {
  state.text = engine.append(run, id);
  byId("text").value = state.text;
  refresh();
}

function drawOne() {
  const probability = probabilityAt(run, state.temperature);
  let left = Math.random(), id = 0;
  while (id < run.next.probabilities.length - 1 && (left -= probability(id)) > 0) id++;
  write(id);
}

function listenToNext() {
  byId("temperature").addEventListener("input", ({ target }) => {
    state.temperature = Number(target.value);
    drawNext();
  });
  byId("likeliest").addEventListener("click", ({ target }) => {
    const at = target.closest("[data-id]");
    if (at) write(Number(at.dataset.id));
  });
  byId("write-next").addEventListener("click", () => write(run.next.top(state.temperature, 1)[0].id));
  byId("draw-next").addEventListener("click", drawOne);
}
