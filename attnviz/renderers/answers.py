"""Sentences about an answer: which heads its rows are of, and what its segments say."""

from attnviz.data.capture import Capture
from attnviz.data.check import Check
from attnviz.data.head import listed
from attnviz.data.shares import Column, Shares
from attnviz.harmless import readable
from attnviz.renderers.titles import amount


def about_answer(shares: Shares) -> str:
    """`builtin: the mean of all 20 heads; 74 prompt tokens, 2 new; rows sum to 1`."""
    capture, choice = shares.capture, shares.choice
    n_new = len(capture.query_tokens)
    read = len(capture.key_tokens) - (0 if capture.kind == "cross" else n_new - 1)
    if len(choice.heads) == 1:
        known = "its retrieval head " if choice.why == "retrieval" else ""
        heads = f"{known}{choice.heads[0]}"
    elif choice.why == "retrieval":
        heads = f"the {shares.how} of its retrieval heads {listed(choice.heads)}"
    elif choice.why == "all":
        heads = f"the {shares.how} of all {len(choice.heads)} heads"
    else:
        heads = f"the {shares.how} of {listed(choice.heads)}"
    name = readable(capture.model.name)
    return f"{name}, {heads}: {amount(read, 'prompt token')}, {n_new:,} new"


MATTERS = 0.1
"""Nats; a change of less is called none."""


def about_check(check: Check) -> str:
    """Whether the segments that were attended to are those that matter."""
    said = [f"log-probability of the answer: {check.log_probability:.2f} nats"]
    most = max(check.effects, key=lambda each: each.share)
    if most.change > -MATTERS:
        name = readable(most.segment)
        said.append(f"{name} has the most attention, but the answer is as probable without it")
    if check.correlation is not None:
        said.append(
            f"rank correlation of attention and effect (Spearman's ρ): {check.correlation:.2f}"
        )
    if check.group is not None:
        n, top, random = check.group.size, check.group.top, check.group.random
        said.append(
            f"without the {amount(n, 'segment')} with the most attention {top:+.2f} nats, without "
            f"{amount(n, 'random one')} {random:+.2f}"
        )
    return "; ".join(said)


def quoted(capture: Capture, column: Column) -> str:
    """The text of a segment's slices."""
    segment = next(s for s in capture.segments if s.name == column.name)
    parts = (" ".join(capture.text[start:end].split()) for start, end in segment.slices)
    return readable(" … ".join(parts))
