"""French verbs: the simple tenses, imperative and past participle of a one-word infinitive.

The regular groups and the families that one rule covers (partir, ouvrir, craindre, conduire,
paraître) are written here; `words/conjugation.txt` has the others.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

Tense: TypeAlias = Literal["present", "imperfect", "future", "conditional"]

_TABLE = Path(__file__).parent / "words" / "conjugation.txt"

_PAST_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")
_FUTURE_ENDINGS = ("ai", "as", "a", "ons", "ez", "ont")
_ER = ("e", "es", "e", "ons", "ez", "ent")
_RE = ("s", "s", "t", "ons", "ez", "ent")
_STRESSED = frozenset((0, 1, 2, 5))

_PARTIR = re.compile(r"(?:.*[^é])?(?:partir|sortir|dormir|servir|sentir|mentir)")
_DOUBLING = ("appeler", "jeter", "épeler", "feuilleter")
_ACUTE = re.compile(r"é([bcdfghjklmnpqrstvxz]+u?)$")
_SILENT = re.compile(r"e([bcdfghjklmnpqrstvxz])$")


@dataclass(frozen=True)
class _Forms:
    """What all forms of a verb are made from."""

    present: tuple[str, ...]
    imperfect: str
    future: str
    participle: str
    imperative: tuple[str, ...]


def conjugate(infinitive: str, tense: Tense, person: int) -> str:
    """The form of a verb; persons 0 to 5 are je, tu, il, nous, vous, ils."""
    forms = _forms(infinitive)
    match tense:
        case "present":
            return forms.present[person]
        case "imperfect":
            return _join(forms.imperfect, _PAST_ENDINGS[person])
        case "future":
            return forms.future + _FUTURE_ENDINGS[person]
        case "conditional":
            return forms.future + _PAST_ENDINGS[person]


def past_participle(infinitive: str) -> str:
    """The masculine singular: mangé, fini, pris."""
    return _forms(infinitive).participle


def imperative(infinitive: str, person: Literal[1, 3, 4]) -> str:
    """The form for tu, nous or vous."""
    return _forms(infinitive).imperative[(1, 3, 4).index(person)]


@cache
def _forms(infinitive: str) -> _Forms:
    table = _table()
    if infinitive in table:
        return _irregular(infinitive, "", table[infinitive])
    for start in range(len(infinitive)):
        if (row := table.get("-" + infinitive[start:])) is not None:
            return _irregular(infinitive, infinitive[:start], row)
    return _regular(infinitive)


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """Rows of the table by infinitive, or by `-ending` of a family."""
    rows = (line.split("\t") for line in _TABLE.read_text(encoding="utf-8").splitlines())
    return {row[0]: tuple(row[1:]) for row in rows if not row[0].startswith("#")}


def _irregular(infinitive: str, prefix: str, row: tuple[str, ...]) -> _Forms:
    """Forms from a row of the table, all of them after the prefix."""
    present, imperfect, future, participle, commands = row
    forms = tuple(prefix + form for form in present.split("/"))
    return _Forms(
        forms,
        _imperfect_stem(forms) if imperfect == "=" else prefix + imperfect,
        infinitive.removesuffix("e") if future == "=" else prefix + future,
        prefix + participle,
        _imperative(forms)
        if commands == "="
        else tuple(prefix + form for form in commands.split("/")),
    )


def _regular(infinitive: str) -> _Forms:
    """Forms by the rules of the groups."""
    present, participle = _present_and_participle(infinitive)
    future = infinitive.removesuffix("e")
    if infinitive.endswith("er") and not _ACUTE.search(infinitive[:-2]):
        future = present[0] + "r"
    return _Forms(present, _imperfect_stem(present), future, participle, _imperative(present))


def _present_and_participle(infinitive: str) -> tuple[tuple[str, ...], str]:
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        return _first_group(infinitive), stem + "é"
    if infinitive.endswith(("vrir", "ffrir")):
        return _add(stem, _ER), stem[:-1] + "ert"
    if _PARTIR.fullmatch(infinitive):
        return _two_stems(stem[:-1], stem), stem + "i"
    if infinitive.endswith("ir"):
        return _two_stems(stem + "i", stem + "iss"), stem + "i"
    if infinitive.endswith("indre"):
        root = infinitive[:-3]
        return _two_stems(root, root[:-1] + "gn"), root + "t"
    if infinitive.endswith("uire"):
        return _two_stems(stem, stem + "s"), stem + "t"
    if infinitive.endswith("aître"):
        root = infinitive[:-4]
        singular = _two_stems(root + "i", root + "iss")
        return (*singular[:2], root + "ît", *singular[3:]), root.removesuffix("a") + "u"
    if infinitive.endswith("re"):
        forms = _add(stem, _RE)
        return (*forms[:2], stem if stem[-1] in "dt" else forms[2], *forms[3:]), stem + "u"
    raise ValueError(f"no rule for the verb {infinitive!r}: add it to {_TABLE.name}")


def _first_group(infinitive: str) -> tuple[str, ...]:
    """The present of a verb in -er, with the spelling of its stem."""
    stem = infinitive[:-2]
    stressed = stem
    if stem.endswith("y"):
        stressed = stem[:-1] + "i"
    elif infinitive.endswith(_DOUBLING):
        stressed = stem + stem[-1]
    elif _ACUTE.search(stem) or _SILENT.search(stem):
        stressed = _SILENT.sub(r"è\1", _ACUTE.sub(r"è\1", stem))
    return tuple(
        _join(stressed if person in _STRESSED else stem, ending)
        for person, ending in enumerate(_ER)
    )


def _join(stem: str, ending: str) -> str:
    """Stem and ending, with the e of mangeons and the cedilla of commençons."""
    if ending[0] in "ao":
        if stem.endswith("c"):
            return stem[:-1] + "ç" + ending
        if stem.endswith("g"):
            return stem + "e" + ending
    return stem + ending


def _add(stem: str, endings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stem + ending for ending in endings)


def _two_stems(singular: str, plural: str) -> tuple[str, ...]:
    return (*_add(singular, _RE[:3]), *_add(plural, _RE[3:]))


def _imperfect_stem(present: tuple[str, ...]) -> str:
    """The nous form without its ending: mang, commenc, finiss."""
    stem = present[3].removesuffix("ons")
    if stem.endswith("ge"):
        return stem[:-1]
    return stem[:-1] + "c" if stem.endswith("ç") else stem


def _imperative(present: tuple[str, ...]) -> tuple[str, ...]:
    """The present of tu, nous, vous; -es loses its s."""
    you = present[1]
    return (you[:-1] if you.endswith("es") else you, present[3], present[4])
