// Windows of the corpus with the strongest links of the head. Words are shaded by the largest weight
// on them; a word that is pointed at shows its own links instead.

const WHOLE = 90, AROUND = 14; // tokens of a window that is shown in full, or around a link
let full = 1; // the weight of the deepest shade
let near = null; // watches for windows that come near

// the windows under their titles: the ones with the largest weight of all, then those of each bin
function windowGroups({ examples }) {
  const strongest = (a, b) => b.apart - a.apart;
  const best = examples.filter(({ kind }) => kind === "top").sort(strongest);
  const drawn = examples.filter(({ kind }) => kind !== "top").sort((a, b) => b.bin - a.bin || strongest(a, b));
  const bins = [...new Set(drawn.map(({ bin }) => bin))].map((bin) => [
    binTitle(bin), drawn.filter((example) => example.bin === bin),
  ]);
  return [["Windows with the strongest links between two words, of the whole corpus", best], ...bins].filter(([, some]) => some.length);
}

function drawExamples(found) {
  const box = byId("windows");
  full = Math.max(...found.examples.map(({ apart }) => apart), 0) || 1;
  byId("directions").hidden = !found.examples.length;
  byId("examples-hint").textContent = found.examples.length
    ? "Words are shaded by the largest weight that another word of the window gives them; outlined: the strongest link, its key with dashes. " +
      "What a word attends to itself, and the first token of a window, are left out of both. Links: the 8 strongest of each word, of 0.005 and more. Windows of a document are counted from 0."
    : data.later || "The scan kept no windows of this head.";
  drawShades(found.examples.length > 0);
  box.replaceChildren();
  near?.disconnect();
  near = new IntersectionObserver(fillNear, { rootMargin: "600px" });
  for (const [title, examples] of windowGroups(found)) {
    const items = examples.map(windowItem);
    box.append(make("h4", "", title), make("ol", "windows", ...items));
    for (const item of items) near.observe(item);
  }
}

// a window is filled when it comes near: a head has dozens of them, of hundreds of words each
function windowItem(example) {
  const item = make("li", "window", whereOf(example), make("div", "words"));
  item.fill = async () => fill(item, example, await linksOf(example));
  return item;
}

function fillNear(entries) {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    target.fill();
  }
}

function binTitle(bin) {
  return `Drawn from the windows whose largest weight is ${rangeOfBin("largest", [bin / data.drawn, (bin + 1) / data.drawn])}`;
}

function drawShades(some) {
  const strip = make("i", "strip");
  byId("shades").replaceChildren(...(some ? ["weight 0 ", strip, ` ${full.toFixed(2)}`] : []));
}

async function linksOf(example) {
  const bytes = await inflated(example.links), all = bytes.length / 4, n = all / 3;
  const at = (i) => ((bytes[i] * 256 + bytes[all + i]) * 256 + bytes[2 * all + i]) * 256 + bytes[3 * all + i];
  return Array.from({ length: n }, (_, i) => ({ query: at(i), key: at(n + i), weight: at(2 * n + i) / data.levels }));
}

function fill(box, example, links) {
  const inner = links.filter(({ query, key }) => query && key && query !== key);
  const strongest = inner.reduce((a, b) => (a && a.weight >= b.weight ? a : b), null);
  const received = new Map();
  for (const { key, weight } of inner) received.set(key, Math.max(weight, received.get(key) || 0));
  const words = box.querySelector(".words"), said = make("p", "said");
  const shown = { box, words, said, example, links, received, strongest, pinned: null };
  words.dir = "auto";
  said.setAttribute("role", "status");
  box.append(said);
  drawWords(shown, excerptOf(example.tokens.length, strongest));
  listenToWords(shown);
  shade(shown, null);
}

function whereOf({ apart, path, start, window: number }) {
  const place = make("bdi", "path", path);
  const from = start ? `, document from byte ${start.toLocaleString("en")}` : "";
  return make("p", "where", make("b", "", apart.toFixed(3)), " strongest link · ", place, `${from}, window ${number}`);
}

// the tokens to show: all of a short window, of a long one those around the strongest link
function excerptOf(n, strongest) {
  if (n <= WHOLE || !strongest) return null;
  const near = (place) => Array.from({ length: 2 * AROUND + 1 }, (_, i) => place - AROUND + i);
  const kept = new Set([...near(strongest.key), ...near(strongest.query)].filter((i) => i >= 0 && i < n));
  return [...kept].sort((a, b) => a - b);
}

function drawWords(shown, excerpt) {
  const { words, example: { tokens } } = shown, spaced = tokens.slice(1).some((token) => token.startsWith(" "));
  const made = [];
  let before = -1;
  for (const index of excerpt || tokens.keys()) {
    if (index > before + 1) made.push(make("span", "gap", " … "));
    else if (made.length && (!spaced || tokens[index].startsWith(" "))) made.push(" ");
    const word = make("span", "word", tokens[index].trimStart() || (index ? "(empty)" : "BOS"));
    word.dataset.token = index;
    word.tabIndex = -1;
    made.push(word);
    before = index;
  }
  if (excerpt && before < tokens.length - 1) made.push(make("span", "gap", " …"));
  words.replaceChildren(...made);
  const [first] = words.querySelectorAll(".word");
  (words.querySelector(`[data-token="${shown.strongest ? shown.strongest.query : 0}"]`) || first || words).tabIndex = 0;
  if (excerpt) shown.box.append(more(`all ${tokens.length} tokens of the window`, () => {
    drawWords(shown, null);
    shade(shown, shown.pinned);
  }));
}

// of a word its links, or of no word what the window's words are given at most
function shade(shown, token) {
  const { words, said, links, received, strongest, example: { tokens } } = shown, back = state.from;
  const own = token === null ? null : links.filter((link) => (back ? link.key : link.query) === token);
  const weights = own ? new Map(own.map((link) => [back ? link.query : link.key, link.weight])) : received;
  for (const word of words.querySelectorAll(".word")) {
    const index = Number(word.dataset.token), weight = weights.get(index) || 0;
    word.style.background = weight ? `rgb(234 88 12 / ${Math.min(1, weight / full).toFixed(3)})` : "";
    const ends = own ? index === token : strongest && (index === strongest.query || index === strongest.key);
    word.classList.toggle("on", Boolean(ends));
    word.classList.toggle("key", Boolean(!own && strongest && index === strongest.key && strongest.key !== strongest.query));
  }
  const name = (index) => tokenName(tokens[index] || (index ? "" : "BOS"));
  if (!own) {
    if (strongest) said.replaceChildren("strongest link: ", name(strongest.query), " → ", name(strongest.key), ` ${strongest.weight.toFixed(2)}`);
    else said.replaceChildren("no links of 0.005 and more");
    return;
  }
  const first = own.sort((a, b) => b.weight - a.weight).slice(0, 5).flatMap((link, i) =>
    [i ? ", " : " ", name(back ? link.query : link.key), ` ${link.weight.toFixed(2)}`]);
  const nothing = back ? " no word" : " no links of 0.005 and more";
  said.replaceChildren(name(token), back ? " ←" : " →", ...(own.length ? first : [nothing]));
}

function listenToWords(shown) {
  const { words } = shown, tokenOf = (event) => { const word = event.target.closest(".word"); return word ? Number(word.dataset.token) : null; };
  const rest = () => shade(shown, shown.pinned);
  words.addEventListener("pointerover", (event) => { if (tokenOf(event) !== null) shade(shown, tokenOf(event)); });
  words.addEventListener("pointerleave", rest);
  words.addEventListener("focusin", (event) => { if (tokenOf(event) !== null && event.target.matches(":focus-visible")) shade(shown, tokenOf(event)); });
  words.addEventListener("focusout", rest);
  const pin = (token) => { shown.pinned = token === shown.pinned ? null : token; shade(shown, shown.pinned); };
  words.addEventListener("click", (event) => { if (tokenOf(event) !== null) pin(tokenOf(event)); });
  words.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") pin(tokenOf(event));
    else if (event.key === "Escape") pin(shown.pinned);
    else if (step) {
      const all = [...words.querySelectorAll(".word")], next = all[all.indexOf(event.target) + step[0] + step[1]];
      if (next) {
        [event.target.tabIndex, next.tabIndex] = [-1, 0];
        next.focus();
      }
    } else return;
    event.preventDefault();
  });
  shown.words.rest = rest; // for a change of direction
}

function listenToExamples() {
  for (const choice of document.getElementsByName("direction")) choice.addEventListener("change", () => {
    state.from = choice.value === "from" && choice.checked;
    writeFragment();
    for (const words of document.querySelectorAll("#windows .words")) words.rest?.();
  });
}

function showDirection() {
  for (const choice of document.getElementsByName("direction")) choice.checked = (choice.value === "from") === state.from;
}
