"""Why a head attends where it does, as JSON."""

from typing import Any

from attnviz.data.serial import run_to_dict, token_to_dict
from attnviz.data.why import Node, Part, Removal, Shares, Why, Write


def why_to_dict(why: Why) -> dict[str, Any]:
    """A contrast with all of its parts, the strongest first."""
    row = why.row
    return {
        **run_to_dict("why", why),
        "tokens": [token_to_dict(token) for token in why.tokens],
        "layer": why.head.layer,
        "head": why.head.head,
        "query": why.query,
        "key": why.key,
        "versus": why.versus,
        "group": why.group,
        "raw": row.raw.tolist(),
        "scores": row.scores.tolist(),
        "weights": row.weights.tolist(),
        "sink_score": row.sink,
        "entropy": row.entropy,
        "contrast": why.contrast,
        "added": why.added,
        "error": why.error,
        "query_parts": _shares(why.query_shares),
        "key_parts": _shares(why.key_shares),
        "pairs": [
            {"query": _part(pair.query), "key": _part(pair.key), "value": pair.value}
            for pair in why.pairs
        ],
        **({"trees": {side: _nodes(nodes) for side, nodes in why.trees}} if why.trees else {}),
        **({"without": [_removal(each) for each in why.removals]} if why.removals else {}),
    }


def _part(part: Part | None) -> dict[str, Any] | None:
    """None stands for all other parts."""
    return None if part is None else part._asdict()


def _shares(shares: Shares) -> list[dict[str, Any]]:
    order = shares.strongest(len(shares.parts))
    return [{**shares.parts[i]._asdict(), "value": float(shares.values[0, i])} for i in order]


def _nodes(nodes: tuple[Node, ...]) -> list[dict[str, Any]]:
    return [
        {
            "part": _part(node.part),
            "value": node.value,
            "query": node.query,
            "key": node.key,
            "parts": _nodes(node.children),
        }
        for node in nodes
    ]


def _removal(removal: Removal) -> dict[str, Any]:
    return {**vars(removal), "part": removal.part._asdict()}


def write_to_dict(write: Write) -> dict[str, Any]:
    """What a head writes, with every reader."""
    return {
        **run_to_dict("why", write),
        "tokens": [token_to_dict(token) for token in write.tokens],
        "layer": write.head.layer,
        "head": write.head.head,
        "query": write.query,
        "weights": write.weights.tolist(),
        "lengths": write.lengths.tolist(),
        "logits": [
            {
                "token": label,
                "id": moved.id,
                "effect": moved.effect,
                "by_source": list(moved.by_source),
            }
            for label, moved in write.moved
        ],
        "readers": [
            {**vars(reader), "layer": reader.head.layer, "head": reader.head.head}
            for reader in write.readers
        ],
    }
