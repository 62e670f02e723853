"""The public Python API: capture a text, read the patterns, save, load."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from attnviz.data.blocks import FloatArray
from attnviz.data.capture import Capture, Kind
from attnviz.data.card import NamedHead
from attnviz.data.check import Check
from attnviz.data.exhibit import Filters, links_of
from attnviz.data.generate import Sampling
from attnviz.data.head import Head, listed
from attnviz.data.shares import Unit
from attnviz.data.tokens import Token
from attnviz.data.transforms import How
from attnviz.data.why import Group, Why, Write
from attnviz.errors import UsageError, as_argument, option, spelled
from attnviz.inputs.capture_file import load_capture
from attnviz.inputs.chat import chat_of
from attnviz.inputs.prompt import Document, cut_prompt, with_documents
from attnviz.inputs.segments import By
from attnviz.models.catalog import Source
from attnviz.models.placement import Device, DType, Engine, Placement
from attnviz.renderers.notes import text_notes
from attnviz.runs.answer import Answer
from attnviz.runs.answers import records_of
from attnviz.runs.choose import plan_heads
from attnviz.runs.generate import Answering, Writing, answering, chat_prompt
from attnviz.runs.options import HeadOptions, TextOptions, Truncation
from attnviz.runs.outputs import Show
from attnviz.runs.prepare import load_model as run_load_model
from attnviz.runs.prepare import prepare
from attnviz.runs.show import pieces_of, show_capture
from attnviz.runs.why import Question, ask_why, what_it_writes
from attnviz.transforms.apply import whole_exhibit
from attnviz.writers.atomic import encoded, write_bytes
from attnviz.writers.formats import choose_format

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from attnviz.models.loaded import LoadedModel

FilePath: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Link:
    """One query, one key, and how much the one attends to the other in one head."""

    layer: int
    head: int
    query: Token
    key: Token
    weight: float


@dataclass(frozen=True)
class Model:
    """A model in memory, to capture many texts with; made by `load_model`."""

    _loaded: "LoadedModel"
    _max_memory: int | None = None

    @property
    def name(self) -> str:
        """The name that it was loaded by."""
        return self._loaded.identity.name

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """How many heads each layer has."""
        return self._loaded.identity.heads_per_layer

    @property
    def named_heads(self) -> tuple[NamedHead, ...]:
        """The heads that the model's card names, each with its behaviour."""
        return self._loaded.card.heads

    def capture(
        self,
        text: str,
        *,
        heads: str | None = None,
        layers: str | None = None,
        bos: bool | None = None,
        special: bool = False,
        truncate: Truncation | None = None,
        target: str | None = None,
    ) -> "AttentionCapture":
        """Run a text and record its attention; see `attnviz.capture`."""
        model, which = self._loaded, HeadOptions(layers, heads, everything=True)
        plan = plan_heads(model.identity, model.card.heads, which)
        options = TextOptions(bos, special, truncate, target, self._max_memory)
        return AttentionCapture(prepare(model, text, options).record(plan.recorded))

    def generate(
        self,
        prompt: str | Sequence[Mapping[str, Any]],
        *,
        docs: Mapping[str, str] | None = None,
        segments: Sequence[str] = (),
        by: By | None = None,
        target: str | None = None,
        max_new_tokens: int = Sampling.most,
        temperature: float = Sampling.temperature,
        top_p: float = Sampling.top_p,
        seed: int = Sampling.seed,
        stop: Sequence[str] = (),
        heads: str | None = None,
        layers: str | None = None,
        reduce: How = "mean",
        bos: bool | None = None,
        special: bool = False,
        truncate: Truncation | None = None,
    ) -> "AttentionAnswer":
        """Answer a prompt and record what the answer attended to; see `attnviz.generate`."""
        options = TextOptions(bos, special, truncate, None, self._max_memory)
        _check_one_of("reduce", reduce, How)
        _check_one_of("by", by or "sentence", By)
        if not isinstance(prompt, str):
            if docs or segments or by:
                raise UsageError("a chat is the whole prompt", "leave its segments out")
            read = chat_prompt(self._loaded, chat_of(list(prompt), "the prompt"))
            options = replace(options, special=True, bos=False)
        elif docs:
            if segments or by:
                raise UsageError("docs are segments already", "leave segments and by out")
            read = with_documents(prompt, [Document(*document) for document in docs.items()])
        else:
            read = cut_prompt(prompt, by, segments)
        sampling = Sampling(max_new_tokens, temperature, top_p, seed)
        writing = Writing(sampling, tuple(stop), target)
        which = HeadOptions(layers, heads)
        asked = answering(self._loaded, read, options, writing, which, reduce, each_head=True)
        return AttentionAnswer(asked, asked.answer(asked.tokens_with_rows()))

    def why(
        self,
        text: str,
        *,
        head: str | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        versus: str | int | None = None,
        group: Group = Question.group,
        top: int = Question.top,
        depth: int | None = None,
        check: bool = False,
        bos: bool | None = None,
        special: bool = False,
        truncate: Truncation | None = None,
    ) -> Why:
        """Take a contrast of a head's scores apart; see `attnviz.why`."""
        _check_one_of("group", group, Group)
        named = _named(query), _named(key), _named(versus)
        asked = Question(head, *named, group, top, depth, check)
        options = TextOptions(bos, special, truncate, None, self._max_memory)
        return ask_why(self._loaded, text, asked, options)

    def writes(
        self,
        text: str,
        *,
        head: str | None = None,
        query: str | int | None = None,
        bos: bool | None = None,
        special: bool = False,
        truncate: Truncation | None = None,
    ) -> Write:
        """Tell what a head writes; see `attnviz.writes`."""
        options = TextOptions(bos, special, truncate, None, self._max_memory)
        return what_it_writes(
            self._loaded, text, Question(head, None if query is None else str(query)), options
        )


@dataclass(frozen=True, eq=False, repr=False)
class AttentionCapture:
    """The attention of one text: a thin handle over the capture record (`record`)."""

    record: Capture

    @property
    def text(self) -> str:
        """The text that was run."""
        return self.record.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens; their `index` is the position in every pattern."""
        return self.record.query_tokens

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that were recorded, in order."""
        return self.record.heads

    def __repr__(self) -> str:
        held = listed(self.heads)
        return f"<AttentionCapture {self.record.model.name}, {len(self.tokens)} tokens, {held}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it: the page, in a frame that can reach nothing outside."""
        from attnviz.runs.webpage import framed

        return framed(self.record)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the text: that it was cut, or is none of the model's world."""
        return tuple(spelled(note, as_argument) for note in text_notes(self.record))

    def pattern(self, layer: int, head: int) -> FloatArray:
        """The weights of one head, float32 (n_queries, n_keys), read-only.

        Rows sum to 1; to less where a part goes to a sink that is no token (`record.sinks`).

        Raises:
            UsageError: the head was not recorded.
        """
        try:
            return self.record.weights(Head(layer, head))
        except KeyError:
            raise UsageError(
                f"the capture does not hold {Head(layer, head)}",
                "capture the text again with this head, or with heads=None for all",
            ) from None

    def links(
        self, top: int | None = None, *, least: float = 0.0, heads: str | None = None
    ) -> list[Link]:
        """The links by head and query, strongest first; never one that the mask forbids.

        Args:
            top: the most keys for each query of each head; None means all.
            least: the smallest weight.
            heads: only these of the recorded heads (`"L1H2"`, `"1.2,1.3"`); None means all.

        Raises:
            UsageError: a head that was not recorded, or a `top` under 1.
        """
        options = HeadOptions(heads=heads, everything=True)
        exhibit = show_capture(self.record, Show(options, filters=Filters(top=top, least=least)))
        queries, keys = exhibit.capture.query_tokens, exhibit.capture.key_tokens
        return [
            Link(head.layer, head.head, queries[query], keys[key], weight)
            for head, head_map in zip(exhibit.capture.heads, exhibit.maps, strict=True)
            for query, key, weight in links_of(exhibit, head_map).rows()
        ]

    def save(self, path: FilePath) -> None:
        """Save everything as an `.npz`, which `attnviz.load` and `attnviz show` read.

        Raises:
            UsageError: the name does not end in `.npz`.
            OutputError: the file cannot be written.
        """
        if choose_format(Path(path), None, False).name != "npz":
            raise UsageError(f"{str(path)!r} does not end in .npz", "name it capture.npz")
        write_bytes(Path(path), encoded(pieces_of(whole_exhibit(self.record), "npz")))


def _named(position: str | int | None) -> str | None:
    """A token's name, or its index as one."""
    return None if position is None else str(position)


def _check_one_of(name: str, value: str, choices: Any) -> None:
    """Check what the command line's own parser checks there.

    Raises:
        UsageError: the value is none of these literals.
    """
    if value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise UsageError(f"{option(name, repr(value))} is not known", f"give one of {known}")


@dataclass(frozen=True, eq=False, repr=False)
class AttentionAnswer:
    """An answer, and what each part of it attended to; made by `attnviz.generate`."""

    _asked: Answering
    _answer: Answer

    @property
    def text(self) -> str:
        """The answer."""
        return self._answer.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer."""
        return self._answer.capture.query_tokens

    @property
    def capture(self) -> AttentionCapture:
        """The rows of each head: one for each token of the answer, over prompt and answer."""
        return AttentionCapture(self._answer.capture)

    def __repr__(self) -> str:
        name, n = self._answer.capture.model.name, len(self.tokens)
        return f"<AttentionAnswer {name}, {n} tokens, {listed(self._answer.choice.heads)}>"

    def shares(self, rows: Unit = "sentence") -> list[dict[str, object]]:
        """A record for each part of the answer and each segment, as `-f jsonl` writes them.

        Args:
            rows: a part is a "sentence", a "word" or a "token"; or the whole answer in a "head".

        Raises:
            UsageError: another kind of row.
        """
        _check_one_of("rows", rows, Unit)
        return list(records_of(self._answer.shares(rows)))

    def check(self) -> Check:
        """Delete one segment after another, and measure what it does to the answer (nats).

        Raises:
            UsageError: there is no segment before the last one.
        """
        return self._asked.check(self._answer)


def load_model(
    name: "str | PreTrainedModel" = "builtin",
    tokenizer: "PreTrainedTokenizerFast | None" = None,
    *,
    revision: str | None = None,
    offline: bool = False,
    engine: Engine = "auto",
    device: Device = "auto",
    dtype: DType = "auto",
    kind: Kind | None = None,
    max_memory: int | None = None,
) -> Model:
    """Load a model once, to capture many texts with it; or take one that is in memory already.

    Args:
        name: `builtin`, a hub id such as `gpt2`, or a model's folder; or a transformers model in
            evaluation mode, wrapped by PEFT or not, which stays as and where it is. Then only
            `kind` and `max_memory` have a meaning.
        tokenizer: that of a model in memory, a fast one.
        revision: a branch, tag or commit of a hub model.
        offline: never use the network.
        engine: the from-scratch model for a GPT-2 ("native"), or "transformers".
        device: "cpu", "cuda" or "mps"; "auto" takes a graphics processor where there is one.
        dtype: what it runs in, "bfloat16" or "float16"; "auto" is float32.
        kind: of an encoder-decoder, which attention: "cross" (None), "encoder" or "decoder".
        max_memory: bytes that may be used; None is 80% of what is free.

    Raises:
        ModelError: it cannot be found, fetched or loaded, or there is no such device.
        UsageError: this engine does not run in this type.
    """
    placement = Placement(device, dtype, max_memory)
    if not isinstance(name, str):
        from attnviz.models.huggingface.load import wrap_huggingface

        moved = placement != Placement(max_memory=max_memory)
        if revision or offline or engine == "native" or moved:
            raise UsageError(
                "a model in memory is taken as it is", "give kind and max_memory alone"
            )
        return Model(wrap_huggingface(name, tokenizer, kind), max_memory)
    if tokenizer is not None:
        raise UsageError("a model that is loaded by its name has a tokenizer", "leave yours out")
    source = Source(
        name, revision, offline, quiet=True, kind=kind, engine=engine, placement=placement
    )
    return Model(run_load_model(source), max_memory)


def capture(
    text: str,
    model: str | Model = "builtin",
    *,
    heads: str | None = None,
    layers: str | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
    target: str | None = None,
) -> AttentionCapture:
    """Run a text through a model and record which tokens attend to which.

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
        heads: `"L1H2"`, `"1.2,1.3"`, `"0-3"`; None means all.
        layers: `"1"`, `"0-2"`; None means all.
        bos: put a beginning token in front; None means as the model was trained.
        special: read `<|endoftext|>` in the text as the special token.
        truncate: cut a text that is too long from this side.
        target: of an encoder-decoder, what it is to have written; None is what it writes.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    loaded = load_model(model) if isinstance(model, str) else model
    return loaded.capture(
        text,
        heads=heads,
        layers=layers,
        bos=bos,
        special=special,
        truncate=truncate,
        target=target,
    )


def generate(
    prompt: str | Sequence[Mapping[str, Any]], model: str | Model = "builtin", **options: Any
) -> AttentionAnswer:
    """Let a model go on with a prompt, and record what each new token attended to.

    Args:
        prompt: a text; or the messages of a chat, which go through the model's own template.
        model: a name as for `load_model`, or a loaded model.
        options: those of `Model.generate`. `docs` (name to text) stand before the prompt;
            `segments` (`"NAME=/regex/"`, `"NAME=START:END"`) and `by` ("sentence", "line",
            "paragraph") say what it is made of. `target` is an answer that is given; of one that
            is written, `max_new_tokens`, `temperature` (0 takes the likeliest token), `top_p`,
            `seed` and `stop` (texts behind which it ends) say how. `heads` and `layers` are those
            of `attnviz.capture`; None means the retrieval heads where they are known, else all.
            `reduce` joins their rows for shares: "mean" or "max".

    Raises:
        AttnvizError: the prompt, the model or an option cannot be used; the message says
            what to do instead.
    """
    loaded = load_model(model) if isinstance(model, str) else model
    return loaded.generate(prompt, **options)


def why(text: str, model: str | Model = "builtin", **options: Any) -> Why:
    """Say why a head's query attends to a key: its score as a sum over the parts of the model.

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
        options: those of `Model.why`. `head`, `query`, `key` and `versus`, another key, name what
            is asked about, as on the command line; each has a default. `group` sums parts up:
            "head", "part" (heads apart by the token that they took from), "layer" or "source".
            `top`: how many of them the table of terms has. `depth`: follow the strongest back
            through so many heads. `check`: take the strongest of each side away, and compute
            anew. `bos`, `special` and `truncate` are those of `attnviz.capture`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    loaded = load_model(model) if isinstance(model, str) else model
    return loaded.why(text, **options)


def writes(text: str, model: str | Model = "builtin", **options: Any) -> Write:
    """Say what a head writes at a query, what it does to the logits, and which heads read it.

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
        options: those of `Model.writes`: `head`, `query`, `bos`, `special` and `truncate`.

    Raises:
        AttnvizError: as `why`.
    """
    loaded = load_model(model) if isinstance(model, str) else model
    return loaded.writes(text, **options)


def load(path: FilePath) -> AttentionCapture:
    """Load a saved capture; no torch is loaded.

    Raises:
        InputError: there is no such file, or it is no capture.
    """
    return AttentionCapture(load_capture(Path(path)))
