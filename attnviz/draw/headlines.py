"""The first line: a head's behaviour on this text, its known behaviours, and why it is shown.

    L2H3: creature → blue .69, fluffy .30 · known for: nouns attend to their adjectives

A title is a claim. Before the `·` is what was computed from the shown links; "known for" quotes
the model's card.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np

from attnviz.draw.labels import distinct_labels, name_of, told_apart
from attnviz.draw.matrix import key_shares
from attnviz.draw.titles import amount, pane_titles
from attnviz.errors import Speller, option, readable
from attnviz.records.capture import VALUE_NORMS, Capture
from attnviz.records.exhibit import Choice, ChoiceReason, Exhibit, HeadMap, Map
from attnviz.records.heads import ALIGNMENT, Finding, FoundLink, Habit, NamedHead, Tendency, listed
from attnviz.records.merging import groups_of
from attnviz.records.places import BESIDE, class_rows
from attnviz.records.rests import rests_in
from attnviz.records.tokens import Token

CHOSEN: Mapping[ChoiceReason, str] = {
    "acts": "chosen automatically",
    "card": "chosen automatically, as the model's card names it",
    "brings": "chosen for its effect on the next token",
    "moves": "chosen as it moves most to one token",
    "even": "chosen automatically, though no head moves much",
    "writes": "chosen automatically, as it attends most to what is written",
    "sees": "chosen automatically, as it attends to single places of the image",
    "aligned": "chosen automatically, as it follows the sound best",
}
HABITS: Mapping[Habit, str] = {
    "previous": "the one before",
    "followers": "what followed their earlier occurrence",
    "self": "themselves",
}
EVEN = 3  # times the mean: a largest weight below it does not stand out
LONGEST = 24  # letters of a label
SINK = 0.3  # of the weight: a column with more dominates the colours
ALSO, MOST_ALSO = 0.5, 2  # of the strongest effect: heads above it are named, too
MOST_RESTS, SMALL_EFFECT = 4, 0.095
SHOWN_SINKS = 0.005  # of the weight on an image; less would be 0%


def about(exhibit: Exhibit, speller: Speller | None = None) -> str:
    """The exhibit's caption, or its heads, a finding about them, and why they are shown.

    `speller` spells the reader's options, to say how to show other heads.
    """
    if exhibit.caption or exhibit.choice is None:
        return exhibit.caption
    even = exhibit.capture.image_alone and _are_even(exhibit)
    return headline(exhibit.choice, exhibit.finding, exhibit.capture, speller, even=even)


def _are_even(exhibit: Exhibit) -> bool:
    """Whether the first head's rows of the class, or else of all patches, are nearly even."""
    head_map, rows = exhibit.maps[0], class_rows(exhibit.capture.query_tokens)
    if not isinstance(head_map, HeadMap):  # too large to keep
        return False
    mean = head_map.weights[list(rows) if rows else slice(None)].mean(axis=0)
    return bool(mean.max() < EVEN * mean.mean())


def headline(
    choice: Choice,
    finding: Finding | None,
    capture: Capture,
    speller: Speller | None = None,
    *,
    even: bool = False,
) -> str:
    """The first line of some heads: `L2H3: … · known for: … (chosen automatically …)`.

    `even`: no weight within an image stands out, so that the title does not claim a few places.
    """
    if choice.why == "only" and choice.named is not None:
        return choice.named.title
    if len(choice.heads) != 1:
        return listed(choice.heads)
    title = head_title(choice, finding, capture)
    why = CHOSEN.get(choice.why, "") if choice.line is None else f"chosen on line {choice.line}"
    if why and choice.why == "sees" and capture.image_alone and choice.line is None:
        who = "class token attends" if class_rows(capture.query_tokens) else "patches attend"
        why = "chosen automatically"
        why += "" if even else f": its {who} to few places, off sinks and registers"
    aligning = {each.head for each in capture.named_heads if each.behaviour == ALIGNMENT}
    if choice.why == "aligned" and choice.line is None and aligning.issuperset(choice.heads):
        why = "chosen automatically, the best of the model's alignment heads"
    if not why:
        return title
    others = f"; {speller('heads', 'all')} shows every head" if speller else ""
    return f"{title} ({why}{others})"


def head_title(choice: Choice, finding: Finding | None, capture: Capture) -> str:
    """The title of a choice's one head: its finding here, and what it is known for.

    A head picked for a behaviour is known only for this one, if the rows show it; one that a user
    chose for what it shows here, or "not on this text". Nothing is claimed about words that the
    model was never trained on.
    """
    (head,) = choice.heads
    if finding is not None and _of_unknown_words(finding, capture):
        return _title(str(head), finding, capture, ())
    if not choice.picked or choice.why in ("aligned", "sees"):
        named = capture.named(head.layer, head.head)
        here = [each for each in named if each not in choice.idle]
        title = _title(str(head), finding, capture, here or named)
        return title if here or not named else f"{title} (not on this text)"
    shows = choice.why == "card" or (finding is not None and finding.behaviour is not None)
    known = [choice.named] if choice.named is not None and shows else []
    return _title(str(head), finding, capture, known)


def map_title(exhibit: Exhibit, head_map: Map) -> str:
    """`L1H2 · known for: nouns attend to their adjectives`, also with a finding; or `L1H2`."""
    choice, capture = exhibit.choice, exhibit.capture
    if choice is not None and [(head_map.layer, head_map.head)] == list(choice.heads):
        if choice.why == "only" and choice.named is not None:
            return f"{head_map.label}: {readable(choice.named.title)}"
        return head_title(choice, exhibit.finding, capture)
    return _title(head_map.label, None, capture, capture.named(head_map.layer, head_map.head))


def map_titles(exhibit: Exhibit, head_map: Map) -> tuple[str, ...]:
    """The title, and shorter ones for less room: `L1H2 · known for: adjectives`."""
    whole = map_title(exhibit, head_map)
    if whole == head_map.label:
        return (whole,)
    return (whole, *pane_titles(exhibit, head_map, " · known for: "))


def _title(
    label: str, finding: Finding | None, capture: Capture, named: Iterable[NamedHead]
) -> str:
    title = f"{label}: {finding_title(finding, capture)}" if finding else label
    known = "; ".join(dict.fromkeys(readable(each.title) for each in named))
    return f"{title} · known for: {known}" if known else title


def finding_title(finding: Finding, capture: Capture) -> str:
    """A finding: `creature → blue .69, fluffy .30`, or `9 of 12 tokens attend most to …`."""
    if finding.tendency is not None:
        return _tendency(finding.tendency, capture)
    words, texts = groups_of(capture, "words"), capture.texts
    whole = finding.behaviour is not None
    queries = _names(capture.query_tokens, words[0], texts[0], whole=whole)
    keys = _names(capture.key_tokens, words[1], texts[1], whole=whole)

    def end(link: FoundLink) -> str:
        itself = capture.one_sequence and link.query == link.key
        return f"{'itself' if itself else keys[link.key]} {share(link.weight)}"

    rows = groupby(finding.links, key=lambda link: link.query)
    return "; ".join(f"{queries[query]} → {', '.join(map(end, links))}" for query, links in rows)


def _of_unknown_words(finding: Finding, capture: Capture) -> bool:
    """Whether a quoted key belongs to a word that the model was never trained on."""
    if not capture.unknown_words or not finding.links:
        return False
    tokens, text = capture.key_tokens, capture.texts[1]
    spans = [
        (tokens[word[0]].start, tokens[word[-1]].end)
        for word in groups_of(capture, "words")[1]
        if {link.key for link in finding.links} & set(word)
    ]
    return any(word in text[start:end] for start, end in spans for word in capture.unknown_words)


def _names(tokens: Sequence[Token], words: Iterable[range], text: str, *, whole: bool) -> list[str]:
    """The tokens' names; a piece of a word as `“Co” of “Coal”`, unless two are, or as the word."""
    labels = [name_of(_cut(label)) for label in distinct_labels(tokens)]
    names, split = labels.copy(), [word for word in words if len(word) > 1]
    texts = [readable(text[tokens[w[0]].start : tokens[w[-1]].end].strip()) for w in split]
    for pieces, word in zip(split, map(_cut, told_apart(texts)), strict=True):
        for i in (i for i in pieces if word and (whole or tokens[i].label != word)):
            names[i] = word if whole else f"“{_cut(tokens[i].label)}” of “{word}”"
    number = Counter(names)
    return [n if whole or number[n] == 1 else labels[i] for i, n in enumerate(names)]


def _tendency(tendency: Tendency, capture: Capture) -> str:
    rows, of = tendency.rows, tendency.of
    if tendency.key is None:
        return f"{_part(rows, of)} tokens attend most to {HABITS[tendency.habit]}"
    token = capture.key_tokens[tendency.key]
    label = distinct_labels(capture.key_tokens)[tendency.key]
    name = token.label if token.special else f"“{_cut(label)}”"
    if tendency.key == 0 or not capture.causal:
        first = "" if token.special or tendency.key else "the first token, "
        return f"{_part(rows, of)} tokens attend most to {first}{name}"
    return f"{_part(rows, of)} tokens from {name} on attend most to it"


def _part(rows: int, of: int) -> str:
    return f"all {of:,}" if rows == of else f"{rows:,} of {of:,}"


def share(weight: float) -> str:
    """A weight in two digits, for a sentence: `.69`, `1.00`."""
    return f"{weight:.2f}".removeprefix("0")


def next_said(exhibit: Exhibit) -> str:
    """`next: “ Mary” .92 (“ the” .02) · strongest link: to#2 → Mary +1.5 logits by L23H0; also …`.

    Empty if no head was chosen for its effect on the next token.
    """
    capture, choice = exhibit.capture, exhibit.choice
    told = choice is not None and (choice.off_rests or choice.why == "even")
    brings = capture.brings if told else None
    if brings is None:
        return ""
    (first, probability), *others = brings.likeliest
    after = "".join(f" ({token} {share(chance)})" for token, chance in others)
    said = f"next: {first} {share(probability)}{after}"
    if brings.times < 1:
        return f"{said} · no link stands out from chance"
    keys, queries = distinct_labels(capture.key_tokens), distinct_labels(capture.query_tokens)
    key = next(i for i, token in enumerate(capture.key_tokens) if token.end > brings.start)
    (head, most), *more = brings.effects
    whose = "" if brings.token == first else f" for {brings.token}"
    link = f"{_cut(queries[-1])} → {_cut(keys[key])} {_effect(most)} logits{whose} by {head}"
    also = [f"{each} {_effect(n)}" for each, n in more if n >= ALSO * most][:MOST_ALSO]
    return f"{said} · strongest link: {link}" + (f"; also {', '.join(also)}" if also else "")


def _effect(number: float) -> str:
    return f"{number:+.1f}" if abs(number) >= SMALL_EFFECT else f"{number:+.2f}"


def rests_said(exhibit: Exhibit) -> str:
    """`, rests: When, the`: the keys on which the picked head rests, which its finding ignores."""
    choice, capture = exhibit.choice, exhibit.capture
    if choice is None or not choice.off_rests:
        return ""
    labels, found = distinct_labels(capture.key_tokens), rests_in(capture, choice.heads[0])
    rests = [_cut(labels[i]) for i in np.flatnonzero(found) if i not in exhibit.dropped]
    more = f" and {len(rests) - MOST_RESTS} more" if len(rests) > MOST_RESTS else ""
    told = "rests" if VALUE_NORMS in capture.extras else "rests by their columns"
    return f", {told}: {', '.join(rests[:MOST_RESTS])}{more}" if rests else ""


def sink_said(exhibit: Exhibit) -> str:
    """`; 41% of the weight is on BOS`, if the first token or a special one has most of it."""
    shares = key_shares(exhibit)
    if shares is None:
        return ""
    capture, key = exhibit.capture, exhibit.keys[int(shares.argmax())]
    token, share = capture.key_tokens[key], float(shares.max())
    if share < SINK or not (token.special or key == 0) or token.patch is not None:
        return ""
    label = distinct_labels(capture.key_tokens)[key]
    name = label if token.special else f"the first token, “{_cut(label)}”"
    return f"; {share:.0%} of the weight is on {name}"


def image_said(exhibit: Exhibit) -> str:
    """`; circle: .97 on the image, 12% of that on sinks`, or the mean of the shown rows."""
    seen = exhibit.on_images
    if seen is None:
        return ""
    if seen.rows == 1 and len(exhibit.queries) == 1:
        of = readable(exhibit.capture.query_tokens[exhibit.queries[0]].label)
    elif exhibit.capture.image_alone:
        tokens = exhibit.capture.query_tokens
        own = [readable(tokens[row].label) for row in class_rows(tokens)]
        of = own[0] if seen.rows == 1 and own else f"mean of {amount(seen.rows, 'token')}"
    else:
        of = f"mean of {amount(seen.rows, 'text token')}"
    heads = f" in {seen.heads:,} heads" if seen.heads > 1 else ""
    image = "the images" if len(exhibit.capture.images) > 1 else "the image"
    sinks = f"{seen.sinks:.0%}" if (seen.sinks or 0) >= SHOWN_SINKS else "none"
    on_sinks = "" if seen.sinks is None else f", {sinks} of that on sinks"
    return f"; {of}{heads}: {share(seen.share)} on {image}{on_sinks}"


def beside_notes(exhibit: Exhibit) -> tuple[str, ...]:
    """A note that images read in cross-attention are not keys."""
    said = f"{BESIDE}; {option('kind', 'cross')} shows the attention to them"
    return (said,) if exhibit.beside else ()


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
