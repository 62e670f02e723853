"use strict";
// A text to tokens: byte-level BPE, as the library `tokenizers` makes them.
//
// Sennrich et al. 2016, arXiv 1508.07909; on bytes: Radford et al. 2019. A text is cut into pieces by a
// regular expression; each byte of a piece becomes a letter, and neighbours are merged, the pair that was
// learned first before all others. Places in a text are counted in units of UTF-16.

// printable bytes are letters of their own; the others have, in order, those from U+0100 on
const LETTERS = (() => {
  const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
})();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));
const SPACE = LETTERS[32];
const BLANK = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/; // Python's

// What is wrong with a text, in a sentence for the reader.
class TextError extends Error {}

class Tokenizer {
  // pieces: their regular expression; unseen: the characters that labels escape; prefix: a space goes before
  // each piece that has none; whole: a piece that is a token is never built by merges; vocabulary: the tokens
  // by id; special: the ids of those that are no text; begin: the id of BOS or null; replaced: the characters that are
  // read as others
  constructor({ pieces, replaced, unseen, prefix, whole, vocabulary, merges, special, begin, context }) {
    this.pieces = new RegExp(pieces, "gu");
    this.unseen = new RegExp(`[${unseen}]`, "gu");
    Object.assign(this, { replaced, prefix, whole, vocabulary, special, begin, context });
    this.ids = new Map(vocabulary.map((token, id) => [token, id]).filter(([token]) => token !== null));
    this.ranks = new Map(merges.map((pair, rank) => [pair, rank]));
    this.longest = vocabulary.reduce((most, token) => Math.max(most, token === null ? 0 : token.length), 1);
  }

  // the tokens of a text, with BOS in front: id, label, text, start, end, special
  encode(text) {
    if (BLANK.test(text)) throw new TextError(`The text is ${text ? "blank" : "empty"}: type at least one word.`);
    if (!text.isWellFormed()) throw new TextError("The text holds half a character: leave it out.");
    const tokens = this.begin === null ? [] : [{ id: this.begin, start: 0, end: 0, special: true }];
    tokens.push(...this.cut(text));
    if (tokens.every((token) => token.special)) throw new TextError("This model's tokenizer makes no token of the text: type another one.");
    if (tokens.length > this.context) throw this.tooLong(`has ${tokens.length.toLocaleString("en")} tokens`);
    return this.labelled(tokens, text);
  }

  tooLong(has) {
    return new TextError(`The text ${has}, but the model takes at most ${this.context.toLocaleString("en")} tokens: shorten it.`);
  }

  // the tokens of a text, none of them special: id, start, end; `of`: how many its piece of the text has
  cut(text) {
    const tokens = [], read = text.replace(/[^]/gu, (character) => this.replaced[character] ?? character);
    for (const { 0: piece, index } of read.matchAll(this.pieces)) {
      const own = this.tokensOf(piece, index), end = tokens.at(-1)?.end ?? 0;
      // a space that was put in front, and is a token alone, has the place of the one that is in the text
      if (own[0].end === index && index > end && text[index - 1] === " ") own[0].start--;
      tokens.push(...own.map((token) => ({ ...token, of: own.length })));
    }
    return tokens;
  }

  // the tokens of a piece that begins at a place of the text; each has the places of its characters
  tokensOf(piece, at) {
    const letters = [], starts = [], ends = [];
    if (this.prefix && piece[0] !== " ") letters.push(SPACE), starts.push(at), ends.push(at);
    for (const character of piece) {
      for (const byte of new TextEncoder().encode(character)) {
        letters.push(LETTERS[byte]), starts.push(at), ends.push(at + character.length);
      }
      at += character.length;
    }
    if (letters.length > this.context * this.longest) throw this.tooLong("has a longer word");
    const parts = this.whole && this.ids.has(letters.join("")) ? [letters.join("")] : this.merged(letters);
    let first = 0;
    return parts.map((part) => {
      const start = starts[first], end = ends[first + part.length - 1];
      first += part.length;
      return { id: this.ids.get(part), start, end, special: false };
    });
  }

  merged(letters) {
    const parts = [...letters];
    for (;;) {
      let best = Infinity, at = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`);
        if (rank < best) best = rank, at = i;
      }
      if (at < 0) return parts;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }

  // the text that tokens spell; bytes that are no character become U+FFFD
  decode(ids) {
    const letters = ids.map((id) => this.vocabulary[id] ?? "").join("");
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(letters, (letter) => BYTES.get(letter)));
  }

  // for each of so many ids its label, and the text that it writes: none for a special token, or for a
  // part of a character
  written(size) {
    return Array.from({ length: size }, (_, id) => {
      const text = this.decode([id]), whole = text && !text.includes("\ufffd");
      return { label: whole ? this.readable(text) : `#${id}`, text: whole && !this.special.includes(id) ? text : "" };
    });
  }

  // the tokens with their texts and labels, which differ from each other, as in Python
  labelled(tokens, text) {
    const named = inParts(tokens, text).map(({ part, ...token }) => {
      const slice = text.slice(token.start, token.end);
      const label = token.special ? "BOS" : standing(this.readable(slice) || "␣");
      return { ...token, text: slice, label: part ? `${label} ${part}` : label };
    });
    const total = new Map(), seen = new Map();
    for (const { label } of named) total.set(label, (total.get(label) ?? 0) + 1);
    return named.map((token) => {
      seen.set(token.label, (seen.get(token.label) ?? 0) + 1);
      return total.get(token.label) > 1 ? { ...token, label: `${token.label}#${seen.get(token.label)}` } : token;
    });
  }

  // a text without its outer spaces, every character that is not seen escaped
  readable(text) {
    const bare = text.replace(/^ +| +$/g, "") || "␣".repeat(text.length);
    return bare.replace(this.unseen, escaped);
  }
}

// tokens that share a character, such as bytes of one letter, are numbered: 1/3, 2/3, 3/3
function inParts(tokens, text) {
  const groups = [];
  for (const token of tokens) {
    const group = groups.at(-1);
    let start = token.start;
    while (start < token.end && text[start] === " ") start++; // spaces belong to the first one alone
    if (group && start < Math.min(group.at(-1).end, token.end)) group.push(token);
    else groups.push([token]);
  }
  return groups.flatMap((group) => group.length < 2 ? group
    : group.map((token, i) => ({ ...token, part: `${i + 1}/${group.length}` })));
}

function escaped(character) {
  const short = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[character];
  const code = character.codePointAt(0), hex = code.toString(16);
  if (short) return short;
  return code < 0x100 ? `\\x${hex.padStart(2, "0")}` : code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

// a combining mark at the beginning of a label stands on a dotted circle
const standing = (label) => /^\p{M}/u.test(label) ? `◌${label}` : label;
