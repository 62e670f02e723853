// Which rows of a head show what it is known for, and the head that fits a text: by the rules of builtin/evidence.py and
// kit/choose.py, with what the page knows of single words (`data.links`, whose bits readings.py gives).

const { rules } = data; // the numbers that both have in common
const JOINING = ["and", ",", "the", "a", "an", "my", "his", "her"];
const PRONOUNS = ["he", "she", "it", "they", "who"];

const QUERY = 1, KEY = 2, PERSON = 4, SEXED = 8, LINKING = 4, CULPRIT = 4, CERTAIN = 8, PLURAL = 16; // bits of a word
const bitsOf = (kind, at) => run.keys[at]?.of > 1 ? 0 : parseInt(data.links[kind]?.[run.keys[at]?.id] ?? "0", 32); // of a piece nothing is known
const is = (kind, at, bit) => Boolean(bitsOf(kind, at) & bit);
const wordAt = (at) => run.keys[at].label.replace(/#\d+$/, "").toLowerCase();
const earlier = (query, fits) => Array.from({ length: query }, (_, key) => key).filter(fits);

const sets = new Map();
const clues = (topic) => sets.get(topic) ?? sets.set(topic, new Set(data.links.clues[topic])).get(topic);

// both of “Tom and Anna”, “the cook and the maid” before a query
function joined(query) {
  const named = earlier(query, (key) => PRONOUNS.some((kind) => is(kind, key, KEY))), found = [];
  for (const first of named) for (const second of named.filter((key) => key > first + 1)) {
    const between = Array.from({ length: second - first - 1 }, (_, at) => wordAt(first + 1 + at));
    if (["and", ","].includes(between[0]) && between.every((each) => JOINING.includes(each))) found.push(first, second);
  }
  return found;
}

// the keys that a query asks for, and how many of them are meant; null: it asks for none
const OCCASIONS = {
  adjectives(query) {
    const verb = (at) => /[^s]s$/.test(wordAt(at)) && is("determiners", at + 1, KEY); // “needs a disk”
    const noun = (at) => is("adjectives", at, QUERY) && !verb(at), keys = [];
    let at = query - 1;
    if (!noun(query) || (noun(query + 1) && !is("adjectives", query, PLURAL) && !is("adjectives", query + 1, CERTAIN))) return null; // a later noun is the head
    while (at > 0 && noun(at) && !is("adjectives", at, KEY)) at--;
    for (; at >= 0 && is("adjectives", at, KEY | LINKING); at--) if (is("adjectives", at, KEY)) keys.unshift(at);
    while (keys.length && !is("adjectives", keys[0], CERTAIN) && !is("determiners", keys[0] - 1, QUERY)) keys.shift(); // another part of speech
    return { keys, meant: "all" };
  },
  pronouns(query) {
    const kind = PRONOUNS.find((each) => is(each, query, QUERY));
    if (!kind) return null;
    const agree = earlier(query, (key) => is(kind, key, KEY)), both = kind === "they" ? joined(query) : [];
    let keys = [...new Set([...agree, ...both])];
    if (kind === "they" && !keys.length) keys = earlier(query, (key) => is("he", key, PERSON));
    for (const bit of kind === "he" || kind === "she" ? [PERSON, SEXED] : []) keys = keys.some((key) => is(kind, key, bit)) ? keys.filter((key) => is(kind, key, bit)) : keys;
    return { keys, meant: kind === "they" ? "some" : "one" };
  },
  senses(query) {
    const topics = data.links.senses?.[wordAt(query)] ?? [], told = new Map();
    for (let at = Math.max(0, query - rules.back); at <= Math.min(run.keys.length - 1, query + rules.ahead); at++) {
      const about = topics.filter((topic) => run.keys[at].of < 2 && wordAt(at) !== wordAt(query) && clues(topic).has(wordAt(at)));
      if (about.length === 1) told.set(about[0], [...told.get(about[0]) ?? [], at]);
    }
    return told.size === 1 ? { keys: [...told.values()][0].filter((key) => key < query), meant: "some" } : null; // of two meanings neither is sure
  },
  mystery(query) {
    const asks = query === run.queries.length - 1 && is("mystery", query, QUERY) && is("mystery", query - 1, CULPRIT);
    return asks ? { keys: earlier(query - 1, (key) => is("mystery", key, KEY)), meant: "one" } : null;
  },
  induction(query) {
    const alike = (a, b) => wordAt(a) === wordAt(b), content = is("induction", query, QUERY);
    if (run.keys[query].of > 1) return null; // a piece
    return { keys: earlier(query, (key) => key > 0 && alike(key - 1, query) && (content || (key > 1 && alike(key - 2, query - 1)))), meant: "some" };
  },
};

// the links of a row that show a behaviour, the strongest first; none where it does not
function actOf(behaviour, layer, head, query) {
  const { keys = [], meant } = OCCASIONS[behaviour](query) ?? {}, row = weightsOf(layer, head, query);
  const links = keys.map((key) => ({ key, value: row[key] })).sort((a, b) => b.value - a.value);
  const least = links.length === 1 ? rules.strongest : { one: rules.chosen, all: rules.strongest / links.length }[meant] ?? rules.strongest;
  const others = row.reduce((most, value, key) => key <= query && !keys.includes(key) ? Math.max(most, value) : most, 0);
  const told = links.filter(({ value }) => value > others), enough = links.reduce((sum, { value }) => sum + value, 0) >= rules.all_keys;
  if (!told.length || !enough || told[0].value < least) return [];
  return meant === "one" ? told.slice(0, 1) : told;
}

// whether a row shows what its head is named for
function isShown({ behaviour, layer, head }, query) {
  if (behaviour === "previous token") return query > 0 && weightsOf(layer, head, query)[query - 1] >= rules.all_keys;
  return !isSelf() || !(behaviour in OCCASIONS) || actOf(behaviour, layer, head, query).length > 0;
}

// the named head that fits the text best, at the first of its clearest rows; null: none shows what it is known for
function fitting() {
  for (const behaviour of engine.about.causal && isSelf() ? rules.order : []) for (const named of data.named.filter((each) => each.behaviour === behaviour && !isRemoved(each.layer, each.head))) {
    const rows = run.queries.map((_, query) => ({ query, act: actOf(behaviour, named.layer, named.head, query) })).filter(({ act }) => act.length);
    const clearest = rows.sort((a, b) => b.act[0].value - a.act[0].value).slice(0, rules.rows).map(({ query }) => query);
    if (clearest.length) return { layer: named.layer, head: named.head, query: Math.min(...clearest) };
  }
  return null;
}

let fits = null; // the head that fits the text, with its query and its first line
let shownFor = location.hash.includes("h=L") ? state.text : null; // the text for which the page picked the head; no switch of a head changes it

const isChosen = ({ layer, head }) => layer === state.layer && head === state.head;

// another text's head: the one that fits it, unless a reader chose one
function offer(found) {
  fits = found;
  if (!found || !state.auto || shownFor === run.text) return;
  shownFor = run.text;
  Object.assign(state, { layer: found.layer, head: found.head, query: found.query, key: null, wanted: run.queries[found.query].label });
}

// who chose the head, and which one would fit better
function drawFits() {
  const better = fits && !isChosen(fits), go = made("button", { type: "button" }, fits ? fits.headline ?? claimOf(fits) : "");
  go.addEventListener("click", () => {
    [state.auto, shownFor] = [true, null];
    offer(fits);
    drawHead();
  });
  byId("fits").hidden = state.auto && !fits;
  byId("fits").replaceChildren(...(state.auto ? [`Chosen by the page${better ? " with every head" : ": it fits this text"}.`] : better ? ["You chose this head. This one fits the text: ", go] : ["You chose this head."]));
}
