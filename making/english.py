"""Make the word lists of `analyses/english/` from WordNet: `python -m making.english`.

WordNet counts how often each sense of a word occurs in texts that were tagged by hand. A word's
main part of speech is the one with the highest count, or its only one. The lists hold single
words in lower case; regular inflections are left out, as the reader strips endings.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

import attnviz.builtin

INDEX = {"n": "index.noun", "v": "index.verb", "a": "index.adj", "r": "index.adv"}
PART = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # of a sense key
WORD = re.compile(r"[a-z]+(-[a-z]+)*")
FILES = {"people": "18", "animals": "05", "groups": "14"}
"""Lexicographer files of nouns, by the name of the list: noun.person and so on."""
SHARE = 0.15
"""The least share of a word's occurrences as an adjective that makes it an adjective, too."""
NOUN_SHARE = 0.03
LISTS = Path(attnviz.builtin.__file__).parent / "english"


@dataclass
class WordNet:
    """The parts of speech of each word: which, and how often; of nouns also what they are for."""

    parts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    files: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    pasts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    irregular: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def main(self, word: str) -> str | None:
        """The main part of speech; None where nothing tells."""
        parts, counts = self.parts[word], self.counts[word]
        if len(parts) == 1:
            return next(iter(parts))
        return max(sorted(parts), key=lambda part: counts[part]) if counts.total() else None

    def share(self, word: str, part: str) -> float:
        """The share of a part of speech among a word's occurrences."""
        total = self.counts[word].total()
        return self.counts[word][part] / total if total else float(self.main(word) == part)

    def is_in(self, word: str, file: str) -> bool:
        """Whether a good part of a noun's senses, by their counts, stands in this file."""
        counts = self.files[word]
        return counts[file] >= max(1.0, counts.total() / 4)


def read_wordnet(folder: Path) -> WordNet:
    """The single words of WordNet's database files."""
    words = WordNet()
    for part, name in INDEX.items():
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            word = line.split(" ", 1)[0]
            if WORD.fullmatch(word):
                words.parts[word].add(part)
    for line in (folder / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        word, sense = key.split("%")
        part, file = sense.split(":")[:2]
        if word in words.parts:
            words.counts[word][PART[part]] += int(count)
            words.files[word][file] += int(count) if part == "1" else 0
    _read_files(folder, words)
    for part, name in (("v", "verb.exc"), ("n", "noun.exc")):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            form, *lemmas = line.split()
            if WORD.fullmatch(form) and lemmas[0] in words.parts:
                words.irregular[part, lemmas[0]].add(form)
                if part == "v" and form not in lemmas:
                    words.pasts[form].add(lemmas[0])
    return words


def _read_files(folder: Path, words: WordNet) -> None:
    """Count every sense of a noun that has no counts once."""
    file_of = {}
    for line in (folder / "data.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            offset, file = line.split(" ", 2)[:2]
            file_of[offset] = file
    for line in (folder / "index.noun").read_text(encoding="utf-8").splitlines():
        word, _, senses, *rest = line.split() if not line.startswith(" ") else ("", "", "0")
        if WORD.fullmatch(word) and not words.files[word]:
            words.files[word].update(file_of[offset] for offset in rest[-int(senses) :])


def lists_of(words: WordNet) -> dict[str, Iterable[str]]:
    """The words of each list, by its name."""
    verbs = [word for word in words.parts if words.main(word) == "v" and words.counts[word]["v"]]
    forms = {f for word in words.parts if "v" in words.parts[word] for f in _forms(words, word)}
    adjectives = [word for word in words.parts if "a" in words.parts[word]]
    mainly = {w for w in adjectives if words.main(w) == "a" and words.share(w, "a") >= 0.5}
    too = {w for w in adjectives if w not in mainly and words.share(w, "a") >= SHARE}
    nouns = [word for word in words.parts if words.main(word) == "n" and words.counts[word]["n"]]
    return {
        "adjectives": mainly - forms,
        "adjectives_too": too | (mainly & forms),
        "verbs": {*verbs, *(f for w in verbs for f in words.irregular["v", w])},
        "nouns": {*nouns, *(f for w in nouns for f in words.irregular["n", w])},
        "nouns_too": {
            word
            for word in words.parts
            if "n" in words.parts[word]
            and words.main(word) != "n"
            and words.share(word, "n") >= NOUN_SHARE
            and not any(word in words.irregular["v", verb] for verb in words.pasts[word])
        },
        **{
            name: {w for w in words.files if words.main(w) == "n" and words.is_in(w, file)}
            for name, file in FILES.items()
        },
        "adverbs": {
            w
            for w in words.parts
            if words.main(w) == "r" and words.counts[w]["r"] and not w.endswith("ly")
        },
    }


def _forms(words: WordNet, verb: str) -> set[str]:
    """The forms of a verb that may stand before a noun: "broken", "chopped", "running"."""
    stem = verb.removesuffix("e")
    doubled = verb + verb[-1]
    regular = {stem + "ed", stem + "ing", doubled + "ed", doubled + "ing"}
    if verb.endswith("y"):
        regular.add(verb[:-1] + "ied")
    return regular | words.irregular["v", verb]


def main(
    wordnet: Annotated[Path, typer.Argument(help="WordNet's database files")] = Path(
        "/usr/share/wordnet"
    ),
    output: Annotated[Path, typer.Option("-o", "--output", help="folder to write")] = LISTS,
) -> None:
    """Write the lists."""
    for name, words in lists_of(read_wordnet(wordnet)).items():
        (output / f"{name}.txt").write_text("\n".join(sorted(words)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
