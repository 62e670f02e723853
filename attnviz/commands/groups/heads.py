"""Options: which heads, which tokens, and what is done to patterns."""

from dataclasses import dataclass

from attnviz.commands import completion
from attnviz.commands.groups.panels import of_heads, of_tokens
from attnviz.records.exhibit import Filters
from attnviz.records.transforms import How, Over, Transforms
from attnviz.runs.options import HeadOptions


@dataclass(frozen=True)
class WhichHeads:
    """Which heads: all that are named."""

    layers: str | None = of_heads(
        None,
        "--layer",
        "-l",
        metavar="LAYERS",
        help="Layers, counted from 0: 1, 0-3, 0,2 or all. Without --head: every head of these "
        "layers.",
    )
    heads: str | None = of_heads(
        None,
        "--head",
        "-H",
        metavar="HEADS",
        autocompletion=completion.heads,
        help="Heads, counted from 0: L1H2 or 1.2; 2 (head 2 of every chosen layer); 0-3; 0,2; "
        "or all.",
    )

    @property
    def options(self) -> HeadOptions:
        """The record that runs take."""
        return HeadOptions(self.layers, self.heads)


@dataclass(frozen=True)
class OneRow:
    """One head and one query."""

    head: str | None = of_heads(
        None,
        "--head",
        "-H",
        metavar="HEAD",
        autocompletion=completion.heads,
        help="The head: L1H2 or 1.2. Default: the one that show picks.",
    )
    query: str | None = of_tokens(
        None,
        "--query",
        metavar="TOKEN",
        help="The query: a token, creature#2, or an index (-1 is the last one). Default: the "
        "first one that show names, or the last word.",
    )


@dataclass(frozen=True)
class Joining:
    """Transforms that join heads, or show what their weights are made of."""

    reduce: How | None = of_heads(
        None,
        "--reduce",
        help="Show the mean or the maximum of the chosen heads (default: all heads).",
    )
    over: Over | None = of_heads(
        None,
        "--over",
        help="Reduce over the heads of each layer, over the layers, or over both. Default: all.",
    )
    rollout: bool = of_heads(
        False,
        "--rollout",
        help="Attention rollout: the product of the attention of all layers, or of all up to "
        "--layer.",
    )
    scores: bool = of_heads(
        False,
        "--scores",
        help="Show scores instead of weights: scaled q·k, before mask and softmax.",
    )


@dataclass(frozen=True)
class HeadTransforms:
    """Transforms that keep heads apart."""

    weighted: bool = of_heads(
        False,
        "--weighted",
        help="Norm-based attention: each weight times the norm of the vector that its key "
        "contributes.",
    )
    chars: bool | None = of_tokens(
        None,
        "--chars/--no-chars",
        help="Merge tokens that are parts of one character. Default: only show merges them, in the "
        "terminal and in pictures.",
        show_default=False,
    )
    words: bool = of_tokens(
        False,
        "--words",
        help="Merge the pieces of each word; a Chinese character counts as a word.",
    )
    drop_sink: bool = of_tokens(
        False,
        "--drop-sink",
        help="Remove the first token (BOS, if there is one) from the keys and rescale each row to "
        "sum to 1.",
    )
    drop_keys: list[str] | None = of_tokens(
        None,
        "--drop-key",
        metavar="TOKEN",
        help="Remove these keys in the same way. Given as for --query.",
    )

    def transforms(self, joining: Joining | None = None) -> Transforms:
        """The record that runs take."""
        own = {**vars(self), "drop_keys": tuple(self.drop_keys or ())}
        return Transforms(**own, **vars(joining or Joining()))


@dataclass(frozen=True)
class Filtering:
    """What is shown of the patterns."""

    queries: list[str] | None = of_tokens(
        None,
        "--query",
        metavar="TOKEN",
        help="Show only these queries (rows): a token, creature#2 (its second occurrence), an "
        "index, or a /regular expression/. Repeatable.",
    )
    keys: list[str] | None = of_tokens(
        None, "--key", metavar="TOKEN", help="Show only these keys (columns). Given as for --query."
    )
    top: int | None = of_tokens(
        None, "--top", metavar="K", min=1, help="Show only the K strongest keys of each query."
    )
    least: float = of_tokens(
        0.0,
        "--min",
        metavar="W",
        min=0.0,
        max=1.0,
        help="Show only links of at least this weight.",
        show_default=False,
    )
    no_self: bool = of_tokens(False, "--no-self", help="Hide links from a token to itself.")
    no_previous: bool = of_tokens(False, "--no-previous", help="Hide links to the previous token.")

    @property
    def filters(self) -> Filters:
        """The record that runs take."""
        named = {"queries": tuple(self.queries or ()), "keys": tuple(self.keys or ())}
        return Filters(**{**vars(self), **named})
