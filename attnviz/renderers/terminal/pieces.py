"""A text in pieces, one for each token, that together are the whole of it."""

from dataclasses import dataclass, replace

from attnviz.errors import readable
from attnviz.records.exhibit import Exhibit, Map, links_of
from attnviz.records.tokens import SPECIAL_LABEL


@dataclass(frozen=True)
class TextPiece:
    """A stretch of the text: what is written, its weight (None: not attended to), what precedes it.

    `lines` line ends and `spaces` spaces stand in front of it in the source. `unseen`: it
    stands for a part of the source that was cut off. `keys` are the tokens that it is made of.
    """

    written: str
    weight: float | None = None
    query: bool = False
    lines: int = 0
    spaces: int = 0
    unseen: bool = False
    keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Span:
    """A stretch of the source that one token covers, or several that share a letter."""

    start: int
    end: int
    weight: float | None
    query: bool
    special: bool
    keys: tuple[int, ...]


def pieces_of(exhibit: Exhibit, head_map: Map) -> list[TextPiece]:
    """The source text in pieces, a piece per token, with the weights of the one query.

    Tokens that share a letter are one piece, with the sum of their weights. Text between
    tokens is kept, so that nothing of the source is lost; what lies before the first or
    behind the last one was cut off, and `…` stands there.
    """
    text = exhibit.capture.texts[1]
    pieces: list[TextPiece] = []
    end, first = 0, True
    for span in _spans(exhibit, head_map):
        if span.special:
            pieces.append(TextPiece(SPECIAL_LABEL, span.weight, span.query, 0, 1, keys=span.keys))
            continue
        before = text[end : span.start]
        pieces += _cut_off(before) if first else [piece_of(before)]
        piece = piece_of(text[span.start : span.end])
        pieces.append(replace(piece, weight=span.weight, query=span.query, keys=span.keys))
        end, first = span.end, False
    pieces += _cut_off(text[end:])
    if exhibit.capture.bos and len(pieces) > 1 and not pieces[1].lines:
        pieces[1] = replace(pieces[1], spaces=max(1, pieces[1].spaces))
    return [p for p in pieces if p.written or p.lines or p.spaces or p.weight or p.query]


def joined(first: TextPiece, second: TextPiece) -> TextPiece:
    """Two pieces of one word as one, with the sum of their weights."""
    return replace(
        first,
        written=first.written + second.written,
        weight=_sum(first.weight, second.weight),
        query=first.query or second.query,
        keys=first.keys + second.keys,
    )


def _sum(first: float | None, second: float | None) -> float | None:
    there = [weight for weight in (first, second) if weight is not None]
    return sum(there) if there else None


def _spans(exhibit: Exhibit, head_map: Map) -> list[_Span]:
    """The key tokens as stretches that do not overlap; tokens that share a letter are one."""
    links = links_of(exhibit, head_map)
    weights = dict(zip(links.key.tolist(), links.weight.tolist(), strict=True))
    # of an encoder-decoder, the query is the word that a position produces, and no key
    query = exhibit.queries[0] if exhibit.capture.one_sequence else -1
    spans: list[_Span] = []
    end = 0
    for token in exhibit.capture.key_tokens:
        span = _Span(
            max(token.start, end),
            max(token.end, end),
            weights.get(token.index),
            token.index == query,
            token.special,
            (token.index,),
        )
        # A blank that two tokens claim does not make one of them.
        shared = exhibit.capture.texts[1][token.start : min(end, token.end)].strip(" ")
        if spans and shared and not (span.special or spans[-1].special):
            spans[-1] = replace(
                spans[-1],
                end=span.end,
                weight=_sum(spans[-1].weight, span.weight),
                query=spans[-1].query or span.query,
                keys=spans[-1].keys + span.keys,
            )
        else:
            spans.append(span)
        end = span.end
    return spans


def _cut_off(source: str) -> list[TextPiece]:
    """What stands for a part at an end of the text that no token covers.

    Blanks are no token's in some models; anything else the model has not seen.
    """
    bare = source.strip(" \n")
    if not bare:
        return [piece_of(source)]
    before, _, behind = source.partition(bare)
    return [replace(piece_of(before), written="…", unseen=True), piece_of(behind)]


def piece_of(source: str) -> TextPiece:
    """Line ends and spaces in front of a token lay the text out; what else it has is written."""
    bare = source.lstrip(" \n")
    before = source[: len(source) - len(bare)]
    lines, spaces = before.count("\n"), len(before) - before.rfind("\n") - 1
    if not bare and "\n" not in before:
        return TextPiece("", spaces=spaces)
    behind = " " * (len(bare) - len(bare.rstrip(" ")))
    return TextPiece(readable(bare) + behind if bare else "", lines=lines, spaces=spaces)
