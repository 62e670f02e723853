"""A map of patched vectors: what stands where, and what its places are called."""

from collections.abc import Mapping

import numpy as np

from attnviz.data.patch import PatchEffect, PatchReport
from attnviz.draw.labels import distinct_labels
from attnviz.draw.matrix import by_head
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head


def map_of(report: PatchReport) -> FloatArray:
    """The shares (layers, heads), or (layers, patched positions); NaN where nothing was patched."""
    if report.kind == "head":
        shares = ((e.site, e.share.mean) for e in report.effects)
        return by_head((Head(site.layer, site.head or 0), share) for site, share in shares)
    column = {position: i for i, position in enumerate(report.positions)}
    layers = max(effect.site.layer for effect in report.effects) + 1
    made = np.full((layers, len(column)), np.nan, np.float32)
    for effect in report.effects:
        if effect.position is not None:
            made[effect.site.layer, column[effect.position]] = effect.share.mean
    return made


def place_names(report: PatchReport, *, unicode: bool = True) -> dict[int, str]:
    """`blue`, or `blue ← red` where the source has another token there; for each patched position.

    `blue, …`: the first pair has `blue` there, and others have others.
    """
    captures = report.capture, report.source
    labels = [distinct_labels(each.query_tokens, unicode=unicode) for each in captures]
    arrow, more = (" ← ", ", …") if unicode else (" <- ", ", ...")
    names = {}
    for position in report.positions:
        ours, theirs = report.tokens_at(position)
        tokens = [ours] if ours.id == theirs.id else [ours, theirs]
        name = arrow.join(of[token.index] for of, token in zip(labels, tokens, strict=False))
        names[position] = name + (more if position in report.varied else "")
    return names


KINDS = {"attention": "attention", "mlp": "MLP", "residual": "residual stream"}


def site_name(effect: PatchEffect, places: Mapping[int, str]) -> str:
    """`L3H2`, `L2 MLP at blue ← red`; `places`: the names of patched positions."""
    site = effect.site
    if site.head is not None:
        return f"L{site.layer}H{site.head}"
    at = "" if effect.position is None else f" at {places[effect.position]}"
    return f"L{site.layer} {KINDS[site.kind]}{at}"
