// What comes next: the likeliest tokens as bars, with every head and without those that are removed.

const MOST_NEXT = 8, KEPT = 3; // bars, and how many of the likeliest with every head are always among them

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

// the likeliest now, and where heads are removed also those that were likeliest with them
function likeliest(now) {
  const found = run.next.top(state.temperature, MOST_NEXT);
  if (!before) return found;
  const gone = before.next.top(state.temperature, KEPT).filter(({ id }) => !found.some((one) => one.id === id));
  return [...found.slice(0, MOST_NEXT - gone.length), ...gone].sort((a, b) => now(b.id) - now(a.id));
}

function drawNext() {
  byId("next").hidden = !run.next;
  if (!run.next) return;
  const now = probabilityAt(run, state.temperature), tokens = likeliest(now), then = before && probabilityAt(before, state.temperature);
  byId("temperature-value").textContent = state.temperature.toFixed(1);
  const last = word(run.queries.at(-1).label);
  byId("next-of").replaceChildren(...(isSelf() ? sentence`The token after ${last}:` : sentence`Predicted where ${last} is written:`).childNodes);
  const lines = byId("likeliest");
  while (lines.children.length < tokens.length) lines.append(made("li", {}, made("button", { type: "button" })));
  while (lines.children.length > tokens.length) lines.lastChild.remove();
  tokens.forEach((token, i) => drawBar(lines.children[i].firstChild, token, now(token.id), then && then(token.id)));
  const [top] = run.next.top(state.temperature, 1);
  byId("writing").hidden = !writes();
  byId("write-next").replaceChildren("write ", word(top.label));
  byId("write-next").disabled = !top.text; // the end of the text
  lines.classList.toggle("compared", Boolean(before));
  byId("compared").textContent = before ? "The mark on a bar is its value with every head." : engine.typed ? "Switch heads off, and the bars move." : "";
  tellEffect();
}

// beside the switches: the likeliest token with every head and without the removed ones, as ablate tells it
function tellEffect() {
  const now = run.next, then = (before || run).next, tokens = new Map([then, now].flatMap((next) => next.top(1, 1)).map((token) => [token.id, token.label]));
  const change = (id) => before ? ` ${number(then.probabilities[id])} → ${number(now.probabilities[id])} (${inNats(now.probabilities[id], then.probabilities[id])})` : ` ${number(now.probabilities[id])}`;
  byId("effect").replaceChildren(made("p", {}, before ? "Likeliest next, before → now:" : "Likeliest next:"), ...[...tokens].map(([id, label]) => made("p", {}, word(label), change(id))));
}

const inNats = (now, then) => `${now < then ? "−" : "+"}${Math.abs(Math.log(now / then)).toFixed(2)} nats`;

function drawBar(button, token, now, then) {
  const bars = made("span", { class: "bars" }, made("i")), was = then === null ? "" : `was ${number(then)}`;
  bars.style.setProperty("--share", now);
  if (was) bars.append(made("i", { class: "before" }));
  bars.style.setProperty("--before-share", then);
  button.replaceChildren(bare(token.label), bars, made("b", {}, number(now)), made("small", {}, was && `was ${number(then, Math.min(3, state.digits))}`));
  button.dataset.id = token.id;
  button.disabled = !writes() || !token.text;
  button.title = was && `${was}, ${inNats(now, then)}`;
  button.setAttribute("aria-label", `${token.label}, probability ${number(now)}${was && `, ${was}, ${inNats(now, then)}`}${button.disabled ? "" : "; write it"}`);
}

// the text with a token behind it; nothing while the run that is shown is of another text
function write(id) {
  if (run.text !== state.text) return;
  state.text = engine.append(run, id);
  byId("text").value = state.text;
  refresh();
}

function drawOne() {
  const probability = probabilityAt(run, state.temperature);
  const known = Object.keys(run.next.written).map(Number); // a server names only the likeliest
  let left = Math.random() * known.reduce((sum, id) => sum + probability(id), 0);
  write(known.find((id) => (left -= probability(id)) <= 0) ?? known.at(-1));
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
