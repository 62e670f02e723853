"""What an answer attended to.

prompt ─► tokens ─► write, or read what is given ─► a row for each new token ─► shares of segments

The prompt is read once. Only the rows of new tokens are kept: joined over the chosen heads or, for
a capture, of each head.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.commands.generate.answer import (
    Answer,
    AnswerShares,
    Check,
    KeyGroup,
    RowUnit,
    check_of,
    columns_of_prompt,
)
from attnviz.commands.heads.retrieval import heads_for_answers
from attnviz.errors import InputError, ModelError, UsageError, option
from attnviz.inputs.prompts import Prompt
from attnviz.inputs.text import check_encodable, check_not_blank
from attnviz.kit.prepare import (
    Budget,
    HeadOptions,
    TextOptions,
    encode,
    fit,
    loss_of,
    unknown_words,
)
from attnviz.records.capture import Capture, FloatArray, LayerPattern, PatternBlock, Wanted
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head, by_layer, choose_heads
from attnviz.records.rows import versions_now
from attnviz.records.tokens import (
    RESTS,
    TEMPLATE,
    Chat,
    Sampling,
    Token,
    asked,
    numbered,
    partition,
    segment_of,
)
from attnviz.records.transforms import How

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass
class KeepRows:
    """Keeps each new token's row: of the heads joined, or of each head.

    `rows`: for each new token (1 or heads, keys). `how`: None keeps each head. `keys`: the number
    of keys in the row of a new token. `first`: the query whose row belongs to the first one.
    """

    heads: tuple[Head, ...]
    how: How | None
    keys: Callable[[int], int]
    first: int = 0
    rows: list[FloatArray] = field(default_factory=list)

    def __call__(self, block: PatternBlock) -> None:
        places, kept = self._kept(block)
        for i, query in enumerate((block.queries - self.first).tolist()):
            seen = kept[:, i, : self.keys(query)]
            if query == len(self.rows):
                size = 1 if self.how else len(self.heads)
                self.rows.append(np.zeros((size, seen.shape[1]), np.float32))
            row = self.rows[query]
            row[places] = np.maximum(row[places], seen) if self.how == "max" else row[places] + seen

    def _kept(self, block: PatternBlock) -> tuple[list[int], FloatArray]:
        """The places of a block's rows, and the rows (1 or heads, queries, keys)."""
        if self.how is None:
            return [self.heads.index(Head(block.layer, h)) for h in block.heads], block.weights
        if self.how == "max":
            return [0], block.weights.max(axis=0, keepdims=True)
        return [0], block.weights.sum(axis=0, keepdims=True) / len(self.heads)


@dataclass(frozen=True)
class NewToken:
    """A token that was written, and its row: the weights (1 or heads, keys)."""

    id: int
    row: FloatArray


Tell: TypeAlias = Callable[[NewToken], bool]
"""Takes each new token; returns whether the model is to write another one."""


def streamed(write: Callable[[Tell], object]) -> Iterator[NewToken]:
    """The tokens that `write` tells of, each as soon as it is there.

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
    """How to get an answer: the model writes it, or the user gives it (`target`).

    `stop`: texts that end it; none: those of the model's card.

    Raises:
        UsageError: an empty text to stop at.
    """

    sampling: Sampling = field(default_factory=Sampling)
    stop: tuple[str, ...] = ()
    target: str | None = None

    def __post_init__(self) -> None:
        if "" in self.stop:
            raise UsageError(f"{option('stop')} is empty", "give a text that ends the answer")


@dataclass(frozen=True, eq=False)
class Answering:
    """A prompt that its model can answer, and the heads to keep of the answer.

    `choice`: the heads; `how`: the way in which their rows are joined. `room`: how many new tokens
    fit into the model's context, where fewer than asked for do. `each_head`: the rows of each head
    are also kept apart.
    """

    model: "LoadedModel"
    prompt: Prompt
    tokens: tuple[Token, ...]
    left_out: tuple[int, int]
    writing: Writing
    choice: Choice
    how: How
    budget: Budget
    room: int | None
    each_head: bool = False

    @property
    def model_notes(self) -> tuple[str, ...]:
        """Notes on every answer of this model, unless the answer is given."""
        if self.writing.target is not None:
            return ()
        self.model.require("generate")
        if self.model.beams <= 1:
            return ()
        follows = "and attnviz follows one, so that the answer may differ from that of transformers"
        return (f"the model's generation settings ask for {self.model.beams} beams, {follows}",)

    @property
    def read(self) -> Capture:
        """The capture of what the model reads before it answers, without any pattern, for notes."""
        blank = self._blank(self.tokens, self.tokens, self.prompt.text, "")
        return replace(blank, loss=loss_of(self.model, self.tokens))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on a chat: its template, and the segments that have no place in the prompt."""
        chat = self.prompt.template is not None
        return (*self.prompt.notes, *(self.empty_notes if chat else ()))

    @property
    def empty_notes(self) -> tuple[str, ...]:
        """A sentence for each segment that has no token of its own."""
        filled = set(segment_of(self.tokens, self.prompt.segments, self.prompt.text))
        return tuple(
            f"no token begins in the segment {each.name!r}, so nothing is counted for it"
            for i, each in enumerate(self.prompt.segments)
            if each.name not in RESTS and i not in filled
        )

    def write(self, tell: Tell) -> None:
        """Tell of each of the answer's tokens with its row: as it is written, or read.

        Raises:
            ModelError: there is no room for the rows.
        """
        rows = len(self.choice.heads) if self.each_head else 1
        kept = 4 * rows * self.writing.sampling.most * self.budget.shape[1]
        self.budget.check(kept, "shorten the prompt, or ask for fewer new tokens")
        if self.writing.target is not None:
            for new in self._read_target(self.writing.target):
                tell(new)
            return
        keep, ids = self._keeping(), list[int]()
        stops = self.writing.stop or self.model.card.stop

        def go_on(id_: int) -> bool:
            ids.append(id_)
            if not tell(NewToken(id_, keep.rows[-1])):
                return False
            so_far = self.model.tokenizer.decoded(ids) if stops else ""
            return not any(stop in so_far for stop in stops)

        self.model.generate(self._ids, self.writing.sampling, self._wanted(), keep, go_on)

    def tokens_with_rows(self, watch: Callable[[], object] = int) -> list[NewToken]:
        """All of the answer's tokens; `watch` is called at each of them."""
        new = list[NewToken]()

        def tell(token: NewToken) -> bool:
            new.append(token)
            watch()
            return True

        self.write(tell)
        return new

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
        """These new tokens as an answer."""
        if not new:
            raise InputError("the model wrote nothing", f"give a {option('target')}")
        ids = [token.id for token in new]
        text, tokens = self.model.tokenizer.continued(self._ids, ids)
        read = self.prompt.text
        if self._crossed:
            blank = self._blank(tokens, self.tokens, read, text)
        else:
            placed = [replace(t, start=t.start + len(read), end=t.end + len(read)) for t in tokens]
            keys = (*self.tokens, *numbered(placed[:-1], len(self.tokens)))
            blank = self._blank(numbered(placed), keys, read + text, "")
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
        if self.each_head:
            for layer, heads in by_layer(self.choice.heads).items():
                layers.append(LayerPattern(layer, heads, rows[first : first + len(heads)]))
                first += len(heads)
        recorded = replace(blank, layers=tuple(layers))
        joined = rows.max(axis=0) if self.how == "max" else rows.mean(axis=0)
        if self.how == "max":  # the largest weights of several heads sum to more than 1
            joined /= joined.sum(axis=1, keepdims=True)
        columns = self._columns
        if not self._crossed:
            of_answer = np.arange(len(self.tokens), len(blank.key_tokens))
            columns = (*columns, KeyGroup("answer", "answer", of_answer))
        return Answer(text, recorded, joined, self.choice, self.how, columns)

    @cached_property
    def _columns(self) -> tuple[KeyGroup, ...]:
        """The columns of the prompt; they take a while where it is long."""
        return columns_of_prompt(
            self.tokens,
            self.prompt.segments,
            self.prompt.text,
            crossed=self._crossed,
            sinks=self.model.sinks,
        )

    def check(self, answer: Answer) -> Check:
        """The change in the answer's probability without each segment.

        The last segment stays, as it asks for the answer.
        """
        self.model.require("generate")
        ids = [t.id for t in answer.capture.query_tokens]
        of = segment_of(self.tokens, self.prompt.segments, self.prompt.text)
        last = None if self._crossed else next(s for s in reversed(of) if s is not None)
        others = [i for i in range(len(self.prompt.segments)) if i != last and i in of]
        if not others:
            raise InputError(
                f"{option('check')} deletes segments before the last one, and there are none",
                f"cut the prompt with {option('by')} or {option('segments')}",
            )
        attention = {c.name: share for c, share in answer.mean_shares() if c.part == "segment"}

        def without(deleted: Collection[int]) -> FloatArray:
            gone = {others[i] for i in deleted}
            left = [t.id for t, segment in zip(self.tokens, of, strict=True) if segment not in gone]
            return self.model.log_probabilities(left, ids)

        names = [self.prompt.segments[i].name for i in others]
        check = check_of(names, [attention[name] for name in names], without)
        if not self._crossed and of[0] in others:
            check = replace(check, sink=self.prompt.segments[of[0]].name)
        if last is None:
            return check
        asks = self.prompt.segments[last].name
        return replace(check, kept=(asks, attention[asks]))

    def _blank(
        self, queries: tuple[Token, ...], keys: tuple[Token, ...], text: str, target: str
    ) -> Capture:
        """The capture of the answer, without a pattern."""
        model = self.model
        return Capture(
            text=text,
            target=target,
            query_tokens=queries,
            key_tokens=keys,
            layers=(),
            model=model.identity,
            bos=keys[0].special,
            left_out=self.left_out,
            unknown_words=unknown_words(self.model, text, self.tokens, target),
            causal=not self._crossed,
            sinks=model.sinks,
            kind="cross" if self._crossed else "answer",
            versions={**versions_now(), **model.versions()},
            asked=asked(),
            named_heads=model.card.heads,
            segments=self.prompt.segments,
        )

    def _read_target(self, target: str) -> Iterator[NewToken]:
        """The tokens of a given answer, read in one pass."""
        ids = [token.id for token in self.tokens_of(target)]
        first = 0 if self._crossed else len(self.tokens) - 1
        keep = self._keeping(first)
        read, target_ids = (self._ids, ids) if self._crossed else ([*self._ids, *ids[:-1]], [])
        queries = None if self._crossed else tuple(range(first, first + len(ids)))
        self.model.run(read, self._wanted(queries), keep, target_ids)
        yield from (NewToken(id_, row) for id_, row in zip(ids, keep.rows, strict=True))

    def _wanted(self, queries: tuple[int, ...] | None = None) -> Wanted:
        return Wanted(by_layer(self.choice.heads), queries)

    def _keeping(self, first: int = 0) -> KeepRows:
        n = len(self.tokens)
        keys = (lambda _: n) if self._crossed else (lambda new: n + new)
        return KeepRows(self.choice.heads, None if self.each_head else self.how, keys, first)

    @property
    def _crossed(self) -> bool:
        return self.model.kind == "cross"

    @property
    def _ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    def tokens_of(self, target: str) -> tuple[Token, ...]:
        """The tokens of a given answer."""
        check_not_blank(target, "the target")
        check_encodable(target)
        return self.model.tokenizer.encode(target, bos=False, special=False)


def _ended(texts: Sequence[str]) -> int:
    """How many parts of an unfinished answer no later token can change.

    A part has ended where the next one has begun. One that is blank, or ends within a character,
    may still become the beginning of the next.
    """
    whole = [bool(text.strip()) and "\ufffd" not in text for text in texts]
    pairs = range(len(texts) - 1)
    return max((i + 1 for i in pairs if whole[i] and whole[i + 1]), default=0)


def chat_prompt(model: "LoadedModel", chat: Chat) -> Prompt:
    """A chat as its model reads it; what its template adds is a segment."""
    from attnviz.models.chat import read_template, rendered

    folder = model.tokenizer.folder
    template = read_template(folder, chat) if folder else None
    if template is None:
        raise ModelError(
            f"{model.identity.name} has no chat template",
            f"give its prompt as a text, with {option('docs')} or {option('segments')}",
        )
    chat_text = rendered(template, chat)
    segments = partition(chat_text.text, chat_text.segments, TEMPLATE, blanks=True)
    return Prompt(chat_text.text, segments, template.name, chat_text.notes)


def answering(
    model: "LoadedModel",
    prompt: Prompt,
    options: TextOptions,
    writing: Writing,
    heads: HeadOptions,
    how: How = "mean",
) -> Answering:
    """A prompt that is ready to be answered."""
    crossed, context, most = model.kind == "cross", model.tokenizer.context, writing.sampling.most
    # a new token that is the last one is not read itself
    most_read = context if crossed else context - 1
    if options.truncate is not None and not crossed:  # what is cut makes room for the answer
        most_read = context - min(most, context // 2)
    read = encode(model.tokenizer, prompt.text, options)
    tokens, left_out = fit(read, most_read, options.truncate)
    n = len(tokens)
    room = context if crossed else context - n
    choice = _choice(model, heads)
    if how == "max" and len(choice.heads) == 1:
        raise UsageError(f"{option('reduce', how)} joins heads, and there is one", "leave it out")
    prepared = Answering(
        model,
        prompt,
        tokens,
        left_out,
        replace(writing, sampling=replace(writing.sampling, most=min(most, room))),
        choice,
        how,
        Budget(model, (n, n + min(most, room)), options.max_memory),
        room if writing.target is None and most > room else None,
    )
    if left_out == (0, 0) and prompt.template is None:
        for note in prepared.empty_notes:
            raise InputError(note, "begin it where a word begins")
    target = 0 if writing.target is None else len(prepared.tokens_of(writing.target))
    if target > room:
        raise InputError(
            f"the prompt has {n} tokens and the answer {target}, but the model takes at most "
            f"{context}" + (" of each" if crossed else " together"),
            "shorten one of them",
        )
    return prepared


def _choice(model: "LoadedModel", heads: HeadOptions) -> Choice:
    """The heads that the user names, else those known to retrieve, else all."""
    retrieving = () if heads.named else heads_for_answers(model)
    if retrieving:
        return Choice(tuple(sorted(retrieving)), "retrieval")
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    return Choice(chosen, "asked" if heads.named else "all")
