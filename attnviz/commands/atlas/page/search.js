// Which heads attend to a token: those that have it among their tokens with the most mass.

const MOST = 24, OTHERS = 12;
let searchable = null; // the tokens of all heads, read when they are needed

function searched() {
  searchable ??= JSON.parse(byId("search").textContent);
  searchable.bare ??= searchable.tokens.map((token) => token.trimStart());
  searchable.folded ??= searchable.bare.map((token) => token.toLowerCase());
  return searchable;
}

// of `because` also `Because` and ` because`; of `Because` no `because`
function matching(asked, starts) {
  const bare = asked.trim(), folded = bare.toLowerCase(), { bare: tokens, folded: low } = searched();
  const [all, wanted] = bare === folded ? [low, folded] : [tokens, bare];
  return all.flatMap((token, i) => ((starts ? token !== wanted && token.startsWith(wanted) : token === wanted) ? [i] : []));
}

function massesOf(side, tokens) {
  const masses = new Map();
  for (const token of tokens) {
    const found = searched()[side][token];
    for (let i = 0; i < found.length; i += 2) masses.set(found[i], (masses.get(found[i]) || 0) + found[i + 1]);
  }
  return [...masses].sort((a, b) => b[1] - a[1]);
}

function search(asked) {
  byId("find").value = asked.trim();
  find();
  byId("found").scrollIntoView({ block: "nearest" });
}

function find() {
  const asked = byId("find").value.trim();
  state.find = asked;
  writeFragment();
  byId("found").hidden = !asked;
  for (const cell of byId("grid").querySelectorAll(".found")) cell.classList.remove("found");
  for (const dot of byId("scatter").querySelectorAll(".found")) dot.classList.remove("found");
  if (!asked) return;
  const tokens = matching(asked, false), keys = massesOf("key", tokens), queries = massesOf("query", tokens);
  byId("found-title").replaceChildren("Heads with “", tokenName(asked), "” among their tokens with the most attention");
  drawFoundHint(tokens, keys.length + queries.length);
  byId("found-lists").replaceChildren(...(tokens.length ? [
    foundList("key", "as a key: weight on it", keys),
    foundList("query", "as a query: its weight on tokens other than the first", queries),
  ] : []));
  drawOthers(matching(asked, true));
  for (const [head] of keys) {
    cells[head].classList.add("found");
    dots[head]?.dot.classList.add("found");
  }
}

function drawFoundHint(tokens, some) {
  const { sampled } = searched(), windows = sampled.length ? count(sampled.at(-1), "sampled window") : "";
  const hint = byId("found-hint");
  if (!sampled.length) return hint.replaceChildren(data.later || "The scan counted no tokens, so there is nothing to search.");
  if (!some) return hint.replaceChildren("No head has it among the 50 tokens with the most mass that the scan keeps of each head and side. It may be rare in the corpus, or cut into several tokens.");
  const variants = tokens.flatMap((token, i) => [i ? ", " : "", tokenName(searched().tokens[token])]);
  return hint.replaceChildren("Tokens: ", ...variants, `. Sums of weights over ${windows}, the largest first; heads with it as a key have a ring in the pictures. Click a head to choose it.`);
}

function foundList(side, title, found) {
  const box = make("div", "masses", make("h4", "", `${title} (${count(found.length, "head")})`)), list = make("ol");
  const most = found.length ? found[0][1] : 1;
  const item = ([head, mass]) => {
    const made = massItem([heads[head].name], mass, most, () => choose(head));
    made.firstChild.addEventListener("pointerenter", () => point(head));
    made.firstChild.addEventListener("pointerleave", () => point(null));
    return made;
  };
  list.append(...found.slice(0, MOST).map(item));
  box.dataset.found = side;
  box.append(found.length ? list : make("p", "hint", "None."));
  if (found.length > MOST) box.append(more(`all ${found.length}`, () => list.append(...found.slice(MOST).map(item))));
  return box;
}

// other tokens that begin like this, the ones of most heads first
function drawOthers(tokens) {
  const weight = (token) => searched().key[token].length + searched().query[token].length;
  const first = tokens.sort((a, b) => weight(b) - weight(a)).slice(0, OTHERS).map((token) => {
    const button = make("button", "other", tokenName(searched().tokens[token]));
    button.type = "button";
    button.addEventListener("click", () => search(searched().tokens[token]));
    return button;
  });
  byId("others").replaceChildren(...(first.length ? ["Other tokens that begin like this: ", ...first] : []));
}

function listenToSearch() {
  byId("find").addEventListener("input", find);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
}
