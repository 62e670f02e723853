"""Arguments from Python: a model, texts, tokens and heads, read and checked.

Options of one value are checked by their declarations, in `option.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.inputs.given import given_of
from attnviz.kit import options as g
from attnviz.kit.option import check_number, check_text, is_several, is_torch_module
from attnviz.kit.options import HeadNames, LayerNames, Names
from attnviz.kit.prepare import HeadOptions, TextOptions, Truncation
from attnviz.kit.prepare import load_model as run_load_model
from attnviz.kit.session import Session
from attnviz.models.catalog import Source
from attnviz.models.placement import DType, Placement
from attnviz.records.capture import PairKind
from attnviz.records.heads import Head, NamedHead
from attnviz.records.tokens import Chat
from attnviz.records.transforms import Transforms

if TYPE_CHECKING:
    from attnviz.inputs.chats import Question
    from attnviz.inputs.prompts import Document
    from attnviz.models.loaded import LoadedModel

A = TypeVar("A", bound=Any)
L = TypeVar("L", bound="Loaded")
FilePath: TypeAlias = str | PathLike[str]
Messages: TypeAlias = Iterable[Mapping[str, Any]] | Mapping[str, Any]
"""A chat: its messages, or an object with these as `messages`, and perhaps `documents`, `tools`; or
a question: an object with a `question`, and perhaps `documents`."""


# A model: by its name, by its folder, or loaded.


@dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """A model in memory, and its source, or None if it was in memory before."""

    _loaded: "LoadedModel"
    _max_memory: int | None = None
    _source: Source | None = None

    @property
    def name(self) -> str:
        """The name by which it was loaded."""
        return self._loaded.identity.name

    @property
    def fingerprint(self) -> str | None:
        """A digest of its weights: names, shapes, types, and fixed samples of every tensor."""
        return self._now()._loaded.identity.fingerprint

    def _now(self: L) -> L:
        """The model in its current state; one that was in memory may have been trained since."""
        if self._source is not None:
            return self
        from attnviz.models.weights import as_it_is_now  # torch

        return replace(self, _loaded=as_it_is_now(self._loaded))

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """The number of heads of each layer."""
        return self._loaded.identity.heads_per_layer

    @property
    def named_heads(self) -> tuple[NamedHead, ...]:
        """The heads that the model's card names, each with its behaviour."""
        return self._loaded.card.heads

    def _text_options(
        self,
        bos: bool | None,
        special: bool,
        truncate: Truncation | None,
        target: str | None = None,
        image: "g.ImageFile | Sequence[g.ImageFile]" = (),
        audio: "g.SoundFile | None" = None,
        start: float = 0.0,
        text_pair: str | None = None,
    ) -> TextOptions:
        """How a text becomes tokens of this model."""
        given, memory = given_of(image, audio, start), self._max_memory
        return TextOptions(bos, special, truncate, target, memory, text_pair, given, start=start)


AnyModel: TypeAlias = str | PathLike[str] | Loaded
"""A model: its name, its folder, or what `load_model` returns."""


def loaded(
    model: AnyModel, name: str = "model", *, causal: bool = False, implicit: bool = False
) -> Loaded:
    """Load a model by its name, or take it as it is; `implicit`: also for implicit attention."""
    if isinstance(model, Loaded):
        if model._loaded.identity.implicit and not implicit:
            raise UsageError(
                "implicit attention is only shown and captured",
                f"load the model without {option('kind', 'implicit')}",
            )
        return model._now()
    if isinstance(model, str | PathLike):
        source = Source(fspath(model), quiet=True, causal=causal)
        return Loaded(run_load_model(source), None, source)
    hint = "give a name, a folder, or a model from attnviz.load_model"
    if is_torch_module(model):
        hint = "give attnviz.load_model(model, tokenizer)"
    raise _of_type(name, model, hint)


def model_of(
    session: Session,
    which: g.WhichModel,
    run: g.ModelRun,
    kind: PairKind | None = None,
    *,
    causal: bool = False,
) -> Loaded:
    """The model of a call from Python."""
    source = g.source_of(session, which, run, kind, causal=causal)
    return Loaded(session.load(source), source.placement.max_memory, source)


def placement_of(device: object, dtype: DType, max_memory: int | None) -> Placement:
    """The device, precision and memory of a model's runs."""
    if max_memory is not None:
        check_number("max_memory", max_memory, 1, whole=True)
    return Placement(str(device), dtype, max_memory)


def check_as_it_is(*, placement: Placement, others: Sequence[object], instead: str) -> None:
    """Check that no option is given that a model in memory cannot change."""
    if any(others) or placement != Placement(max_memory=placement.max_memory):
        raise UsageError("these options cannot change a model in memory", f"give only {instead}")


# Texts, and the options of each.


def _listed(value: Any) -> list[Any]:
    """One value or several, as a list."""
    return list(value) if is_several(value) else [value]


def texts_of(text: str | Iterable[str]) -> list[str]:
    """One text or several."""
    texts = _listed(text)
    for each in texts:
        check_text(each)
    if not texts:
        raise UsageError("there is no text", "give one or more")
    return texts


def prompt_of(prompt: "str | Messages | Chat | Question") -> "str | Chat | Question":
    """A text, a chat, or a question; what was read already stays as it is."""
    from attnviz.inputs import chats  # which a text needs not
    from attnviz.inputs.beside import in_our_words

    if isinstance(prompt, Chat | chats.Question):
        return prompt
    if isinstance(prompt, Mapping):
        content = in_our_words(prompt, "the prompt")
        made = chats.question_of if "question" in content else chats.chat_of
        return made(content, "the prompt")
    if not is_several(prompt):
        check_text(prompt)
        assert isinstance(prompt, str)
        return prompt
    messages = list(prompt)
    if messages and not any(isinstance(each, Mapping) for each in messages):
        check_text(prompt)
    return chats.chat_of(messages, "the prompt")


def path_of(name: str, path: FilePath) -> str:
    """A path, as a text."""
    if not isinstance(path, str | PathLike):
        raise _of_type(name, path, "give a path")
    return fspath(path)


def documents_of(docs: "Mapping[str, str] | list[Document] | None") -> "list[Document]":
    """Texts by name, None: none; or documents that were read already, whose names may repeat."""
    from attnviz.inputs.prompts import Document

    if docs is None:
        return []
    if docs and isinstance(docs, list) and all(isinstance(each, Document) for each in docs):
        return docs
    if not isinstance(docs, Mapping):
        raise _of_type("docs", docs, 'give texts by name: {"name": "text"}')
    for name, text in docs.items():
        check_text(name)
        check_text(text)
    return [Document(name, text) for name, text in docs.items()]


def asked_of_each(
    asked: A,
    text: str | Sequence[str],
    answer: str | Sequence[str] | None,
    versus: str | Sequence[str] | None,
) -> list[tuple[str, A]]:
    """Yield each text and its options, with the answer and the versus: one for all or for each.

    `asked`: a record with an `answer` and a `versus`.
    """
    texts = texts_of(text)
    answers = _words_of("answer", answer, len(texts))
    others = _words_of("versus", versus, len(texts))
    return [
        (text, replace(asked, answer=word, versus=other))
        for text, word, other in zip(texts, answers, others, strict=True)
    ]


def paired(
    options: TextOptions, pair: str | Sequence[str] | None, texts: Sequence[Any]
) -> list[TextOptions]:
    """The text options of each text, with its second text: one for all, or one for each."""
    return [replace(options, text_pair=each) for each in _words_of("text_pair", pair, len(texts))]


def sources_of(source: str | Sequence[str], texts: int) -> list[str]:
    """The source of each text: one for all, or one for each."""
    if isinstance(source, str):
        return [source] * texts
    sources = texts_of(source)
    if len(sources) != texts:
        wrong = f"{amount(texts, 'text')} and {amount(len(sources), 'source')} are given"
        raise UsageError(wrong, "give one source, or one for each text")
    return sources


def _words_of(name: str, answer: str | Sequence[str] | None, texts: int) -> list[str | None]:
    if answer is None or isinstance(answer, str):
        return [answer] * texts
    words = _listed(answer)
    if len(words) != texts or not all(isinstance(word, str) for word in words):
        raise UsageError(
            f"{option(name)} is not one text, or one for each of {texts}",
            "give one, or a list of as many as there are texts",
        )
    return list(words)


def words(name: str, texts: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts of an option: one or several, or none for None."""
    return tuple(_several(name, texts, str, "give a str, or several"))


def token_names(name: str, tokens: Names | None) -> tuple[str, ...]:
    """The names of tokens that an option takes, or none for None."""
    kind, hint = str | Integral, "give tokens or positions"
    return tuple(map(str, _several(name, tokens, kind, hint)))


def token_of_each(
    name: str, token: str | int | Sequence[str | int] | None, texts: int
) -> list[str | None]:
    """The name of a token of each text: one for all, or one for each."""
    if not is_several(token):
        assert token is None or isinstance(token, str | int)
        return [one_name(token)] * texts
    names = token_names(name, token)
    if len(names) != texts:
        raise UsageError(
            f"{option(name)} has {amount(len(names), 'token')} for {amount(texts, 'text')}",
            "give one, or one for each text",
        )
    return list(names)


def _several(name: str, values: Any, kind: Any, hint: str) -> list[Any]:
    several = [] if values is None else _listed(values)
    for each in several:
        if not isinstance(each, kind):
            raise _of_type(name, each, hint)
    return several


def _of_type(name: str, value: object, hint: str) -> UsageError:
    return UsageError(f"{option(name)} is of type {type(value).__name__}", hint)


def one_name(token: str | int | None) -> str | None:
    """The name of a token; a number is a position."""
    return None if token is None else str(token)


def transforms(
    *, weighted: bool, chars: bool | None, words: bool, drop_sink: bool, drop_key: Names | None
) -> Transforms:
    """The transforms that keep heads apart."""
    return Transforms(
        weighted=weighted,
        chars=chars,
        words=words,
        drop_sink=drop_sink,
        drop_keys=token_names("drop_keys", drop_key),
    )


def head_names(heads: HeadNames | None) -> str | None:
    """The names of heads, or of layers, as on the command line."""
    if heads is None or isinstance(heads, str):
        return heads
    several = heads if isinstance(heads, Sequence) and not _is_head(heads) else [heads]
    return ",".join(_head_name(each) for each in several)


def layer_names(name: str, layers: LayerNames | None) -> str | None:
    """The names of layers, as on the command line."""
    if layers is None or isinstance(layers, str):
        return layers
    several = layers if isinstance(layers, list | tuple) else [layers]
    if not several or not all(type(each) in (int, str) for each in several):
        raise UsageError(f"{option(name)} names no layers", 'give a number, a list, or "all"')
    return ",".join(map(str, several))


def which_heads(
    model: "Loaded | None",
    layers: HeadNames | None,
    heads: HeadNames | None,
    *,
    everything: bool = False,
) -> HeadOptions:
    """The record that runs take; with a model, sets are replaced by the names of their heads."""
    which = HeadOptions(head_names(layers), head_names(heads), everything)
    if model is None or not which.of_sets:
        return which
    from attnviz.kit.sets import with_names

    return with_names(model._loaded, which, model._max_memory)


def _head_name(head: object) -> str:
    if isinstance(head, str):
        return head
    if isinstance(head, int) and not isinstance(head, bool):
        return str(head)
    if _is_head(head):
        return str(Head(*head))  # type: ignore[misc]
    raise UsageError(f"{head!r} names no head", 'give one as "L1H2" or (1, 2)')


def _is_head(head: object) -> bool:
    two = isinstance(head, tuple) and len(head) == 2
    return two and all(isinstance(each, int) for each in head)  # type: ignore[attr-defined]
