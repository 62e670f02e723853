"""Which heads a run records, which of them are shown, and why: for every command and the API."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnviz.analyses.default_head import default_head, only_named
from attnviz.analyses.finding import finding_of
from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, ModelIdentity
from attnviz.records.exhibit import Choice, Exhibit, Finding
from attnviz.records.heads import Head, NamedHead, choose_heads, every_head, listed
from attnviz.runs.options import HeadOptions


@dataclass(frozen=True)
class HeadPlan:
    """The heads that are recorded, and the choice among them.

    `choice` is None where one of `recorded` is to be picked by its pattern.
    """

    recorded: tuple[Head, ...]
    choice: Choice | None = None

    def pick(self, captured: Capture) -> Choice:
        """The choice, made by the patterns where it is still open."""
        if self.choice is not None:
            return self.choice
        choice = default_head(captured)
        return replace(choice, why="held") if len(captured.heads) == 1 else choice


def plan_heads(
    identity: ModelIdentity,
    named: Sequence[NamedHead],
    options: HeadOptions,
    held: Sequence[Head] | None = None,
) -> HeadPlan:
    """Plan which heads are recorded and shown.

    Args:
        identity: the model.
        named: the heads that its card names.
        options: what the user asked for.
        held: the heads of a saved capture; None where the model is yet to run.

    Raises:
        UsageError: a head that the model does not have, or that the capture lacks.
    """
    every = every_head(identity.heads_per_layer) if held is None else tuple(held)
    if options.named:
        heads = choose_heads(identity.heads_per_layer, options.layers, options.heads)
        _check_held(heads, every)
        return HeadPlan(heads, Choice(heads))
    if options.everything:
        return HeadPlan(every, Choice(every))
    if sum(identity.heads_per_layer) == 1:
        return HeadPlan(every, Choice(every, "only", named[0] if named else None))
    only = only_named(named)
    if only is not None and only.head in every:
        return HeadPlan((only.head,), Choice((only.head,), "card", only))
    return HeadPlan(every)


def plan_capture(captured: Capture, options: HeadOptions) -> HeadPlan:
    """Plan which heads of a saved capture are shown; raises what `plan_heads` raises."""
    if captured.signed and not options.named:  # no rule picks a head by its scores
        options = replace(options, everything=True)
    return plan_heads(captured.model, captured.named_heads, options, captured.heads)


def start_choice(captured: Capture) -> Choice | None:
    """The head to begin with where every head is on show; None where not all are held."""
    if captured.heads != every_head(captured.model.heads_per_layer):
        return None
    return default_head(captured)


def found(exhibit: Exhibit, head: Head) -> Exhibit:
    """The exhibit with what its picked head does, as far as is shown of it."""
    maps = [each for each in exhibit.maps if (each.layer, each.head) == head]
    if not maps or exhibit.choice is None or not exhibit.choice.picked:
        return exhibit
    return replace(exhibit, finding=finding_of(exhibit, maps[0], exhibit.choice.named))


def told_query(finding: Finding | None) -> int | None:
    """The first query whose row is told of a head; None where none is."""
    return finding.links[0].query if finding is not None and finding.links else None


def _check_held(heads: Sequence[Head], held: Sequence[Head]) -> None:
    missing = [str(head) for head in heads if head not in held]
    if missing:
        raise UsageError(
            f"the capture does not hold {', '.join(missing[:8])}",
            f"it holds {listed(held)}; capture the text again with {option('heads', 'all')}",
        )
