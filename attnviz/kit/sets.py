"""Sets of heads that a measure names: `top5:induction`, `induction:0.4`, `role:sink`.

The measure is the standard probe of `attnviz heads`, which runs once for a model: its table is kept
in the user's cache, by the model's fingerprint.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from logging import INFO, getLogger
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attnviz.errors import UsageError, readable
from attnviz.kit import cache
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.records.heads import Head, choose_heads, every_head
from attnviz.records.tokens import add_to_call

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

SET = re.compile(
    r"(?:(?:top(?P<top>[1-9]\d{0,4})|(?P<role>role)):(?P<of>[^:]+)"
    r"|(?P<score>[^:]+):(?P<least>-?(?:\d+\.?\d*|\.\d+)))"
)
NOTES = getLogger("attnviz.notes")
"""The command line writes what it is told as notes."""
NOTES.setLevel(INFO)
ProbedHeads: TypeAlias = Mapping[Head, tuple[Mapping[str, float], str | None]]
"""The scores of each head on the standard probe, and its role."""
_PROBED = dict[Path, Any]()
"""The tables of this process, also if the user's cache cannot be written."""


def with_names(
    model: "LoadedModel", heads: HeadOptions, max_memory: int | None = None
) -> HeadOptions:
    """The same with the names of its heads in place of each set.

    They are noted, and recorded in the call under way.

    Raises:
        UsageError: there is no such measure, no such head, or the model cannot read the probe.
    """
    among = choose_heads(model.identity.heads_per_layer, heads.layers, None)
    items = [each.strip() for each in str(heads.heads).split(",")]
    found = dict[str, list[str]]()
    for item in dict.fromkeys(each for each in items if ":" in each):
        found[item] = [str(head) for head in _of_set(item, _probed(model, max_memory), among)]
        NOTES.info("%s: %s", item, ", ".join(found[item]))
    add_to_call("sets", found)
    names = [name for item in items for name in found.get(item, [item])]
    return replace(heads, heads=",".join(names))


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().lower()


def _of_set(item: str, probed: ProbedHeads, among: Sequence[Head]) -> list[Head]:
    """The heads of one set, of those that are `among` the chosen layers."""
    from attnviz.records.metrics import METRICS, ROLES  # of plugins, too

    parts = SET.fullmatch(item.strip().lower())
    roles = {_folded(role.name): role.name for role in ROLES}
    scores = {_folded(score.short): name for name, score in METRICS.items()}
    scores |= {_folded(name): name for name in METRICS}
    of_role = parts is not None and parts["role"] is not None
    known = roles if of_role else scores
    name = parts and known.get(_folded(parts["of"] or parts["score"]))
    if not (parts and name):
        every = ", ".join(dict.fromkeys(known.values()))
        raise UsageError(
            f"{item!r} names no set of heads",
            f"give top5:SCORE, SCORE:0.4 or role:ROLE; a {'role' if of_role else 'score'} is one "
            f"of {every}",
        )
    if of_role:
        heads = [head for head in among if probed[head][1] == name]
        wrong = f"no head here has the role {name!r} on the probe"
    else:
        every_score = ((head, probed[head][0][name]) for head in among)
        there = [(head, score) for head, score in every_score if not isnan(score)]
        ranked = sorted(there, key=lambda each: (-each[1], each[0]))  # the highest first
        heads = [head for head, _ in ranked][: int(parts["top"] or len(ranked))]
        wrong = f"no head here has a score of {name!r} on the probe"
        if parts["least"] and heads:
            heads = [head for head, value in ranked if value >= float(parts["least"])]
            wrong = f"no head here reaches {name} {parts['least']} on the probe; "
            wrong += f"{ranked[0][0]} has most, {ranked[0][1]:.2f}"
    if not heads:
        raise UsageError(wrong, "see attnviz heads for the scores of all heads")
    return heads


def _probed(model: "LoadedModel", max_memory: int | None) -> ProbedHeads:
    """The table of the standard probe: kept, or measured now."""
    from attnviz.kit.scores import PROBED, Probe, kept_of, score_probe

    path = cache.kept_in(model, PROBED)
    table = _table(model, _PROBED.get(path)) or _table(model, cache.known(model, PROBED))
    if table is None:
        options, name = TextOptions(max_memory=max_memory), readable(model.identity.name)
        try:
            report = score_probe(model, Probe(), options, HeadOptions())
        except UsageError as error:
            wrong = f"no measure names heads of {name}, as {error.wrong}"
            raise UsageError(wrong, "give their names, as in L1H2") from None
        _PROBED[path] = kept_of(report)
        table = _table(model, _PROBED[path])
        assert table is not None  # it is whole
    return table


def _table(model: "LoadedModel", kept: Any) -> ProbedHeads | None:
    """The table of what is kept; None unless it is whole."""
    from attnviz.records.metrics import METRICS, ROLES

    names, table = {role.name for role in ROLES}, dict[Head, tuple[Mapping[str, float], Any]]()
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        for head in every_head(model.identity.heads_per_layer):
            own, role = kept["scores"][str(head)], kept["roles"].get(str(head))
            scores = {name: nan if own[name] is None else float(own[name]) for name in METRICS}
            table[head] = scores, role if role in names else None
        return table
    return None
