// Elements of HTML, sentences with words and terms in them, and numbers as explain writes them.

function made(name, attributes = {}, ...inside) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(key, value);
  node.append(...inside.flat().filter((each) => each !== null));
  return node;
}

// sentence`${word("creature")} asks` is a paragraph
const sentence = (parts, ...values) => made("p", {}, ...parts.map((part, i) => [part, ...[values[i] ?? []].flat()]));
const aside = (...inside) => made("p", { class: "hint" }, ...inside);
const formula = (text) => made("p", { class: "formula" }, text);
const bare = (label) => made("b", { class: "word" }, label); // in a list
const word = (label) => bare(`“${label}”`); // in a sentence

const LARGE = 1e7; // larger numbers are written with an exponent

function number(value, digits = state.digits) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  if (Math.abs(value) >= LARGE) return value.toExponential(Math.min(digits, 4));
  return value.toFixed(digits).replace(/^-(0(?:\.0*)?)$/, "$1"); // no minus in front of a zero
}

// a weight in two digits, as it stands in a sentence: `.69`, `1.00`
const share = (weight) => weight.toFixed(2).replace(/^0/, "");
const percent = (weight) => weight > 0 && weight < 0.005 ? "under 1%" : `${Math.round(100 * weight)}%`;
const amount = (many, thing) => `${many} ${thing}${many === 1 ? "" : "s"}`;
const shape = (...sizes) => `(${sizes.join(", ")})`;

// “fluffy (51%), blue (35%)”, and “and” before the last
const listed = (items) => items.flatMap((item, i) => [i === 0 ? "" : i === items.length - 1 ? " and " : ", ", ...[item].flat()]);

// Terms: each shows its definition when it is pointed at or focused.

const meanings = new Map(Object.entries(data.terms || {}).map(([name, meaning]) => [name.toLowerCase(), { name, meaning }]));

const term = (name, said = name) => meanings.has(name.toLowerCase()) ? made("dfn", { tabindex: 0, "data-term": name.toLowerCase() }, said) : said;

// terms that stand in the page's HTML; one without a definition is a word like others
function markTerms() {
  for (const node of document.querySelectorAll("[data-means]")) node.replaceWith(term(node.dataset.means, node.textContent));
  const list = [...meanings.values()].flatMap(({ name, meaning }) => [made("dt", {}, name), made("dd", {}, meaning)]);
  byId("glossary").hidden = !list.length;
  byId("terms").replaceChildren(...list);
}

let explained = null; // the element that the note is about

// a note beside an element, such as a definition
function note(target, ...inside) {
  if (explained && explained !== target) explained.removeAttribute("aria-describedby");
  explained = target;
  target.setAttribute("aria-describedby", "definition");
  byId("definition").replaceChildren(...inside);
  byId("definition").hidden = false;
  placeNote();
}

function placeNote() {
  const box = byId("definition"), at = explained.getBoundingClientRect();
  const wide = document.documentElement.clientWidth, tall = document.documentElement.clientHeight;
  box.style.left = `${Math.max(8, Math.min(at.left, wide - box.offsetWidth - 8))}px`;
  const under = at.bottom + 6;
  box.style.top = `${under + box.offsetHeight > tall ? Math.max(8, at.top - box.offsetHeight - 6) : under}px`;
}

function hideNote() {
  if (explained) explained.removeAttribute("aria-describedby");
  explained = null;
  byId("definition").hidden = true;
}

function listenToTerms() {
  const define = ({ target }) => {
    const of = target.closest && target.closest("dfn");
    if (!of) return;
    const { name, meaning } = meanings.get(of.dataset.term);
    note(of, made("b", {}, name), ` ${meaning}`);
  };
  // the pointer may go on into the note, as to copy it
  const leave = ({ target, relatedTarget }) => {
    const inside = (node) => node === explained || byId("definition").contains(node);
    if (explained && explained.matches("dfn") && inside(target) && !inside(relatedTarget)) hideNote();
  };
  for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, define);
  for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, leave);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideNote(); });
  // what is focused is scrolled to, and keeps its note
  document.addEventListener("scroll", () => explained && explained === document.activeElement ? placeNote() : hideNote(), { passive: true });
}
