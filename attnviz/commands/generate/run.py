"""The attention of an answer to the segments of its prompt.

prompt ─► tokens ─► write, or read what is given ─► a row for each new token ─► shares of segments

The prompt is read once. Only the rows of new tokens are kept: joined over the chosen heads or, for
a capture, of each head.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.commands.generate.answer import (
    Answer,
    AnswerShares,
    FindResting,
    KeyGroup,
    RowUnit,
    columns_of_prompt,
    shown_apart,
)
from attnviz.commands.generate.chain import chain_of, check_hops
from attnviz.commands.generate.check import checked
from attnviz.commands.generate.choice import choice_of, note_on
from attnviz.commands.generate.occluded import See
from attnviz.commands.generate.prompt import seeing
from attnviz.draw.titles import named_words
from attnviz.errors import IdleOption, InputError, ModelError, UsageError, option
from attnviz.inputs.prompts import Prompt, seen_prompt
from attnviz.inputs.text import check_encodable, check_not_blank
from attnviz.inputs.vectors import Steering
from attnviz.kit.intervene import steered, tell_written
from attnviz.kit.prepare import (
    Budget,
    HeadOptions,
    TextOptions,
    as_read,
    empty_capture,
    encode,
    fit,
    loss_of,
    notes_on,
)
from attnviz.records.capture import (
    GATES,
    Capture,
    FloatArray,
    IntArray,
    LayerPattern,
    PatternBlock,
    Wanted,
)
from attnviz.records.exhibit import Choice
from attnviz.records.grounding import Check, CheckMethod
from attnviz.records.heads import Head, by_layer
from attnviz.records.merging import word_groups
from attnviz.records.places import BESIDE, lie_beside
from attnviz.records.tokens import RESTS, Sampling, Token, numbered, segment_of
from attnviz.records.transforms import Contributions, How

MANY = 4
"""Pieces of a word that a model hardly met while it was trained."""

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel, ReadInput


@dataclass
class KeepRows:
    """Keeps each new token's row: of the heads joined, or of each head.

    `rows`: for each new token (1 or heads, keys). `how`: None keeps each head. `keys`: the number
    of keys in the first row, and how many more there are in each later one. `first`: the query
    whose row belongs to the first one. `may`: as of `Answer`; `rests`: for each new token, too.
    """

    heads: tuple[Head, ...]
    how: How | None
    keys: tuple[int, int]
    first: int = 0
    may: IntArray = field(default_factory=lambda: np.zeros(0, int))
    rows: list[FloatArray] = field(default_factory=list)
    rests: list[FloatArray] = field(default_factory=list)

    @cached_property
    def _find(self) -> FindResting:
        return FindResting(len(self.heads), self.may)

    @cached_property
    def _places(self) -> dict[Head, int]:
        return {head: place for place, head in enumerate(self.heads)}

    def __call__(self, block: PatternBlock) -> None:
        own = [self._places[Head(block.layer, head)] for head in block.heads]
        places, weights = [0], block.weights
        if self.how is None:
            places = own
        elif self.how == "max":
            weights = weights.max(axis=0, keepdims=True)
        else:
            weights = weights.sum(axis=0, keepdims=True) / len(self.heads)
        prompt, more = self.keys
        for i, query in enumerate((block.queries - self.first).tolist()):
            seen = weights[:, i, : prompt + more * query]
            if query == len(self.rows):
                size = 1 if self.how else len(self.heads)
                self.rows.append(np.zeros((size, seen.shape[1]), np.float32))
                self.rests.append(np.zeros(len(self.may), np.float32))
            if len(self.may):
                rests = self._find.of_row(query, own, block.weights[:, i])
                self.rests[query] += rests.sum(axis=0) / len(self.heads)
            row = self.rows[query]
            row[places] = np.maximum(row[places], seen) if self.how == "max" else row[places] + seen


@dataclass(frozen=True)
class NewToken:
    """A token that was written, and its row: the weights (1 or heads, keys).

    `rests`: the weight of the heads, joined, on the keys that may be rests.
    """

    id: int
    row: FloatArray
    rests: FloatArray


Tell: TypeAlias = Callable[[NewToken], bool]
"""Takes each new token; returns whether the model is to write another one."""


def streamed(write: Callable[[Tell], object]) -> Iterator[NewToken]:
    """The tokens that `write` reports, each as soon as it is there.

    `write` runs in a thread of its own, which ends with this iterator. Allocating is slower there:
    for a whole answer, call `write` without.
    """
    queue, stopped = SimpleQueue[NewToken | BaseException | None](), False

    def tell(new: NewToken) -> bool:
        queue.put(new)
        return not stopped

    def work() -> None:
        try:
            write(tell)
            queue.put(None)
        except BaseException as error:  # a panic of a compiled library is no Exception
            queue.put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (new := queue.get()) is not None:
            if isinstance(new, BaseException):
                raise new
            yield new
    finally:
        stopped = True
        thread.join()


@dataclass(frozen=True)
class Writing:
    """The source of an answer: the model writes it, or the user gives it (`target`).

    `stop`: texts that end it; none: those of the model's card. `steering`: what is added to the
    model's stream.

    Raises:
        UsageError: an empty text to stop at.
    """

    sampling: Sampling = field(default_factory=Sampling)
    stop: tuple[str, ...] = ()
    target: str | None = None
    steering: Steering | None = None

    def __post_init__(self) -> None:
        if "" in self.stop:
            raise UsageError(f"{option('stop')} is empty", "give a text that ends the answer")


@dataclass(frozen=True, eq=False)
class Answering:
    """A prompt that its model can answer, and the heads to keep of the answer.

    `target`: the ids of an answer that is given. `choice`: the heads; `how`: the way in which their
    rows are joined. `room`: the number of new tokens that fit the model's context, where fewer than
    asked for do. `each_head`: the rows of each head are also kept apart. `contribution`:
    its rows are contribution weights.
    `sections`, `hops`: as `Answer` has them. `seen`: the prompt with its images; `see`: reads it
    with others.
    """

    model: "LoadedModel"
    prompt: Prompt
    tokens: tuple[Token, ...]
    left_out: tuple[int, int]
    writing: Writing
    target: Sequence[int] | None
    choice: Choice
    how: How
    budget: Budget
    room: int | None
    each_head: bool = False
    contribution: bool = False
    sections: tuple[str, ...] = ()
    hops: int = 0
    seen: "ReadInput | None" = None
    see: See | None = None

    def __post_init__(self) -> None:
        if self.hops and self._crossed:
            wrong = "goes back through the answer, which attends only to its source"
            raise IdleOption(f"{option('hops')} {wrong}")
        if self.contribution:
            self.model.check_contributions()

    @property
    def model_notes(self) -> tuple[str, ...]:
        """Notes on every answer of this model: how its heads were chosen, and its beams."""
        about_heads = note_on(self.choice, self.model)
        notes = () if about_heads is None else (about_heads,)
        if self.target is not None:
            return notes
        self.model.require("generate")
        if self.model.beams <= 1:
            return notes
        follows = "and attnviz follows one, so that the answer may differ from that of transformers"
        asks = f"the model's generation settings ask for {self.model.beams} beams, {follows}"
        return (*notes, asks)

    @cached_property
    def read(self) -> Capture:
        """The capture of what the model reads before it answers, without any pattern, for notes."""
        blank = self._blank(self.tokens, self.tokens, self.prompt.text)
        return replace(blank, loss=loss_of(self.model, self.tokens))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on a chat: its template, and the segments that have no place in the prompt.

        And on words that the built-in model hardly met.
        """
        chat = self.prompt.template is not None
        of_chat = self.empty_notes if chat else ()
        beside = lie_beside(self.read.images, self.tokens)
        said = (f"{BESIDE}; counted here is the attention to the text and to their one token",)
        notes = (*self.prompt.notes, *self.unread_notes, *of_chat, *self._rare_words)
        return (*notes, *(said if beside else ()))

    @property
    def unread_notes(self) -> tuple[str, ...]:
        """Notes that keys of a chat or a question are not read, perhaps the answer."""
        if not self.prompt.unread:
            return ()
        said = f"not read: {named_words(self.prompt.unread)}"
        given = "" if self.target is not None else "; an answer that is given is “target”"
        return (f"{said}{given}",)

    @property
    def _rare_words(self) -> tuple[str, ...]:
        if self.read.loss is None or self.read.strange:  # another note says it of the whole text
            return ()
        pieces = (self.tokens[w.start : w.stop] for w in word_groups(self.tokens))
        rare = ("".join(token.text for token in w).strip() for w in pieces if len(w) >= MANY)
        words = tuple(dict.fromkeys(rare))
        said = (
            f"the built-in model reads these words in {MANY} or more pieces, and hardly knows them"
        )
        return (f"{said}: {named_words(words)}",) if words else ()

    @property
    def empty_notes(self) -> tuple[str, ...]:
        """A sentence for each segment that has no token of its own."""
        return tuple(
            f"no token begins in the segment {each.name!r}, so nothing is counted for it"
            for i, each in enumerate(self.prompt.segments)
            if each.name not in RESTS and i not in self._segments
        )

    @cached_property
    def _segments(self) -> list[int | None]:
        """For each token the number of its segment; None for a special token."""
        return segment_of(self.tokens, self.prompt.segments, self.prompt.text)

    @cached_property
    def _columns(self) -> tuple[KeyGroup, ...]:
        return columns_of_prompt(
            self._segments, self.prompt.segments, crossed=self._crossed, sinks=self.model.sinks
        )

    @cached_property
    def _may_rest(self) -> IntArray:
        """The keys that may be rests: behind the first token, in no document; none without one."""
        prompt = self.prompt
        sources = [prompt.source(each.name) == "document" for each in prompt.segments]
        if self._crossed or self.contribution or self.how == "max" or not any(sources):
            return np.zeros(0, int)
        of = enumerate(self._segments)
        return np.array([k for k, i in of if k and i is not None and not sources[i]], int)

    @property
    def _crossed(self) -> bool:
        return self.model.kind == "cross"

    @property
    def _ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def apart(self) -> bool:
        """Whether a page of it shows each head."""
        new = self.writing.sampling.most if self.target is None else len(self.target)
        return shown_apart(self.choice, new, len(self.tokens) + new)

    def write(self, tell: Tell) -> None:
        """Tell of each of the answer's tokens with its row: as it is written, or read.

        Raises:
            ModelError: there is no room for the rows.
        """
        heads = self.choice.heads
        kept = 4 * (len(heads) if self.each_head else 1) * self.writing.sampling.most
        what = "shorten the prompt, or ask for fewer new tokens"
        self.budget.check(kept * self.budget.shape[1], what)
        first = len(self.tokens) - 1 if self.target is not None and not self._crossed else 0
        grow = (len(self.tokens), 0 if self._crossed else 1)
        how = None if self.each_head else self.how
        keep = KeepRows(heads, how, grow, first, self._may_rest)
        if self.target is not None:  # read in one pass
            ids, new = self._ids, list(self.target)
            read, target = (ids, new) if self._crossed else ([*ids, *new[:-1]], [])
            queries = None if self._crossed else tuple(range(first, first + len(new)))
            wanted = Wanted(by_layer(heads), queries, contributions=self.contribution)
            self.model.run(read, wanted, keep, target)
            for id_, row, rests in zip(new, keep.rows, keep.rests, strict=True):
                tell(NewToken(id_, row, rests))
            return
        written = list[int]()
        stops = self.writing.stop or self.model.card.stop

        def go_on(id_: int) -> bool:
            written.append(id_)
            if not tell(NewToken(id_, keep.rows[-1], keep.rests[-1])):
                return False
            so_far = self.model.tokenizer.decoded(written) if stops else ""
            return not any(stop in so_far for stop in stops)

        wanted = Wanted(by_layer(heads), contributions=self.contribution)
        self.model.generate(self._ids, self.writing.sampling, wanted, keep, go_on)

    def tokens_with_rows(self, watch: Callable[[], object] = int) -> list[NewToken]:
        """All of the answer's tokens; `watch` is called at each of them."""
        new = list[NewToken]()

        def tell(token: NewToken) -> bool:
            new.append(token)
            watch()
            tell_written(self.model.tokenizer.exact(token.id))
            return True

        self.write(tell)
        return new

    def written(self, watch: Callable[[], object] = int) -> Answer:
        """The whole answer, with what gates behind the softmax let through, which takes a run.

        `watch`: as of `tokens_with_rows`.
        """
        answer = self.answer(self.tokens_with_rows(watch))
        capture, n = answer.capture, len(self.tokens)
        new = [token.id for token in capture.query_tokens]
        gates = self.model.gates([*self._ids, *new[:-1]]) if self.model.gated else None
        if gates is None:
            return answer
        extras = {**capture.extras, GATES: gates[..., n - 1 :]}
        return replace(answer, capture=replace(capture, extras=extras))

    def with_each_head(self, answer: Answer) -> Answer:
        """The answer with the rows of each head; where they were not kept, it is read again."""
        if answer.capture.layers:
            return answer
        new = [token.id for token in answer.capture.query_tokens]
        again = replace(self, target=new, each_head=True)
        layers = again.answer(again.tokens_with_rows()).capture.layers
        return replace(answer, capture=replace(answer.capture, layers=layers))

    def stream(self, unit: RowUnit, watch: Callable[[], object] = int) -> Iterator[AnswerShares]:
        """The shares in the parts of the answer, each part as soon as the next one has begun."""
        new, out = list[NewToken](), 0
        for token in streamed(self.write):
            new.append(token)
            watch()
            answer = self.answer(new)
            ended = _ended([part.text for part in answer.parts(unit)])
            if ended > out:
                yield answer.shares(unit, slice(out, ended))
                out = ended
        yield self.answer(new).shares(unit, slice(out, None))

    def answer(self, new: Sequence[NewToken]) -> Answer:
        """Make an answer of these new tokens."""
        if not new:
            raise InputError("the model wrote nothing", f"give a {option('target')}")
        read, columns, n = self.prompt.text, self._columns, len(self.tokens)
        text, tokens = self.model.tokenizer.continued(self._ids, [token.id for token in new])
        if self._crossed:
            blank = self._blank(tokens, self.tokens, read, text)
        else:
            placed = [replace(t, start=t.start + len(read), end=t.end + len(read)) for t in tokens]
            keys = (*self.tokens, *numbered(placed[:-1], n))
            blank = self._blank(numbered(placed), keys, read + text)
            columns = (*columns, KeyGroup("answer", "answer", np.arange(n, len(keys))))
        rows = np.zeros((len(new[0].row), len(new), len(blank.key_tokens)), np.float32)
        for i, token in enumerate(new):
            rows[:, i, : token.row.shape[1]] = token.row
        if not np.isfinite(rows).all():
            raise ModelError(
                "the attention of the answer is not a number (NaN or infinite)",
                "the checkpoint may be damaged; in half precision try "
                f"{option('dtype', 'float32')}",
            )
        layers, first = list[LayerPattern](), 0
        for layer, heads in by_layer(self.choice.heads).items() if self.each_head else ():
            layers.append(LayerPattern(layer, heads, rows[first : first + len(heads)]))
            first += len(heads)
        joined = rows.max(axis=0) if self.how == "max" else rows.mean(axis=0)
        if self.how == "max":  # the largest weights of several heads sum to more than 1
            joined /= joined.sum(axis=1, keepdims=True)
        recorded = replace(blank, layers=tuple(layers))
        made = Answer(text, recorded, joined, self.choice, self.how, columns, self.prompt.id)
        made = replace(made, asking=self.prompt.asking, images=self.prompt.images)
        made = replace(made, may=self._may_rest, rests=np.stack([each.rests for each in new]))
        return replace(made, named=self.sections, hops=self.hops)

    def check(self, answer: Answer, method: CheckMethod = "delete") -> Check:
        """Measure how deletions of the prompt's segments change the answer's probability.

        Raises:
            UsageError: the chain of an answer without hops.
            InputError: there is nothing to delete, or no chain.
        """
        check_hops(method, self.hops)
        self.model.require("generate")
        check = checked(
            self.model, self.tokens, self.prompt, self._segments, answer, method, self.see
        )
        if not self.hops or method not in ("delete", "chain"):
            return check
        chain = chain_of(self.model, answer, check)
        if method == "chain" and chain is None:
            raise InputError(
                "the answer attended to no segment, so there is no chain",
                f"cut the prompt with {option('by')} or {option('segments')}",
            )
        return replace(check, chain=chain)

    def _blank(
        self, queries: tuple[Token, ...], keys: tuple[Token, ...], text: str, written: str = ""
    ) -> Capture:
        """The capture of the answer, without a pattern."""
        return replace(
            empty_capture(self.model, text, self.tokens, queries, keys, written),
            left_out=self.left_out,
            causal=not self._crossed,
            kind="cross" if self._crossed else "answer",
            segments=self.prompt.segments,
            transforms=(Contributions(),) if self.contribution else (),
            images=self.seen.images if self.seen else (),
        )


def _ended(texts: Sequence[str]) -> int:
    """The number of parts of an unfinished answer that no later token can change.

    A part has ended where the next one has begun. One that is blank, or ends within a character,
    may still become the beginning of the next.
    """
    whole = [bool(text.strip()) and "\ufffd" not in text for text in texts]
    pairs = range(len(texts) - 1)
    return max((i + 1 for i in pairs if whole[i] and whole[i + 1]), default=0)


def answering(
    model: "LoadedModel",
    prompt: Prompt,
    options: TextOptions,
    writing: Writing,
    heads: HeadOptions,
    how: How = "mean",
) -> Answering:
    """A prompt that is ready to be answered."""
    choice = choice_of(model, heads, options.max_memory)  # before it reads images, or is steered
    model = steered(model, writing.steering)
    crossed, context, most = model.kind == "cross", model.tokenizer.context, writing.sampling.most
    # a new token that is the last one is not read itself
    most_read = context if crossed else context - 1
    if options.truncate is not None and not crossed:  # what is cut makes room for the answer
        most_read = context - min(most, context // 2)
    model, prompt, read, seen, see = _as_read(model, prompt, options)
    tokens, left_out = fit(read, most_read, options.truncate)
    n = len(tokens)
    room = context if crossed else context - n
    if how == "max" and len(choice.heads) == 1:
        raise UsageError(f"{option('reduce', how)} has no effect on a single head")
    target = None if writing.target is None else _ids_of(model, writing.target, options)
    short = room if target is None and most > room else None
    writing = replace(writing, sampling=replace(writing.sampling, most=min(most, room)))
    budget = Budget(model, (n, n + min(most, room)), options.max_memory)
    prepared = Answering(
        model, prompt, tokens, left_out, writing, target, choice, how, budget, short
    )
    prepared = replace(prepared, seen=seen, see=see)
    if left_out == (0, 0) and prompt.template is None:
        for note in prepared.empty_notes:
            raise InputError(note, "begin it where a word begins")
    if target is not None and len(target) > room:
        raise InputError(
            f"the prompt has {n} tokens and the answer {len(target)}, but the model takes at most "
            f"{context}" + (" of each" if crossed else " together"),
            "shorten one of them",
        )
    return prepared


def _as_read(
    model: "LoadedModel", prompt: Prompt, options: TextOptions
) -> "tuple[LoadedModel, Prompt, tuple[Token, ...], ReadInput | None, See | None]":
    """The tokens of a prompt; of one with images, as a view of the model sees them."""
    if not options.given:
        how = as_read(model.tokenizer, prompt.text, options)[1]
        tokens = encode(model.tokenizer, prompt.text, how)
        if prompt.template is None:
            notes = notes_on(model.tokenizer, prompt.text, tokens, how)
            prompt = replace(prompt, notes=(*prompt.notes, *notes))
        return model, prompt, tokens, None, None
    see = seeing(model, prompt, options)
    seen = see(options.pictures)
    prompt = seen_prompt(prompt, seen.text, seen.spans)
    return seen.model, prompt, seen.tokens, seen, see


def _ids_of(model: "LoadedModel", target: str, options: TextOptions) -> list[int]:
    """The ids of a given answer."""
    check_not_blank(target, "the target")
    check_encodable(target)
    tokens = model.tokenizer.encode(target, bos=False, special=options.special)
    return [token.id for token in tokens]
