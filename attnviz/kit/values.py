"""What a user gives in Python, checked as the command line's own parser checks it there."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from os import PathLike, fspath
from typing import Any, TypeAlias

from attnviz.errors import UsageError, option
from attnviz.inputs.prompts import Document, chat_of
from attnviz.kit.options import HeadNames, LayerNames, Names
from attnviz.kit.prepare import HeadOptions
from attnviz.records.heads import Head
from attnviz.records.tokens import Chat
from attnviz.records.transforms import Transforms

FilePath: TypeAlias = str | PathLike[str]
Messages: TypeAlias = Iterable[Mapping[str, Any]] | Mapping[str, Any]
"""A chat: its messages, or an object with these as `messages`, and perhaps `documents`, `tools`."""


def check_text(text: object) -> None:
    """Check that a text is one.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(text, str):
        given = "None" if text is None else f"a value of type {type(text).__name__}"
        raise UsageError(f"{given} is not a text", _instead_of_text(text))


def _instead_of_text(given: object) -> str:
    """What to give where no text was given."""
    if isinstance(given, PathLike):
        return "give what the file holds: path.read_text()"
    if isinstance(given, bytes):
        return "give a str: data.decode()"
    if hasattr(given, "record"):
        return "give its text"
    if isinstance(given, Mapping):
        return "give a str; attnviz.generate takes a chat"
    if is_torch_module(given) or hasattr(given, "heads_per_layer"):
        return "give the text first, and the model after it"
    return "give the texts one by one" if _is_several(given) else "give a str"


def is_torch_module(given: object) -> bool:
    """Whether something is a module of torch, such as a model of transformers that is not loaded
    by `load_model`; torch is not imported to see it."""
    return any(kind.__module__.startswith("torch.nn.") for kind in type(given).__mro__)


def _is_several(given: object) -> bool:
    """Whether several values are given, and no text, bytes or file."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | PathLike | Mapping)


def _listed(given: Any) -> list[Any]:
    """One value or several, as a list."""
    return list(given) if _is_several(given) else [given]


def texts_of(text: str | Iterable[str]) -> list[str]:
    """One text or several.

    Raises:
        UsageError: there is none, or something that is no text.
    """
    texts = _listed(text)
    for each in texts:
        check_text(each)
    if not texts:
        raise UsageError("there is no text", "give one or more")
    return texts


def prompt_of(prompt: str | Messages | Chat) -> str | Chat:
    """A text, or the messages of a chat; a chat that was read already stays as it is.

    Raises:
        UsageError: it is neither.
        InputError: it is a chat without messages, or with others than chats have.
    """
    if isinstance(prompt, Chat):
        return prompt
    if isinstance(prompt, Mapping):
        return chat_of(dict(prompt), "the prompt")
    if not _is_several(prompt):
        check_text(prompt)
        assert isinstance(prompt, str)
        return prompt
    messages = list(prompt)
    if messages and not any(isinstance(each, Mapping) for each in messages):
        check_text(prompt)
    return chat_of(messages, "the prompt")


def path_of(name: str, given: FilePath) -> str:
    """A path, as a text.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(given, str | PathLike):
        raise UsageError(f"{option(name)} is of type {type(given).__name__}", "give a path")
    return fspath(given)


def documents_of(docs: Mapping[str, str] | list[Document] | None) -> list[Document]:
    """Texts by name, None: none; or documents that were read already, whose names may repeat.

    Raises:
        UsageError: they are none.
    """
    if docs is None:
        return []
    if docs and isinstance(docs, list) and all(isinstance(each, Document) for each in docs):
        return docs
    if not isinstance(docs, Mapping):
        raise UsageError(
            f"{option('docs')} is of type {type(docs).__name__}",
            'give texts by name: {"name": "text"}',
        )
    for name, text in docs.items():
        check_text(name)
        check_text(text)
    return [Document(name, text) for name, text in docs.items()]


def questions_of(
    text: str | Sequence[str],
    answer: str | Sequence[str] | None,
    versus: str | Sequence[str] | None,
) -> list[tuple[str, str | None, str | None]]:
    """Each text, its answer and its versus, which are one for all or one for each.

    Raises:
        UsageError: there is another number of them, or something that is no text.
    """
    texts = texts_of(text)
    answers = _words_of("answer", answer, len(texts))
    return list(zip(texts, answers, _words_of("versus", versus, len(texts)), strict=True))


def _words_of(name: str, given: str | Sequence[str] | None, texts: int) -> list[str | None]:
    if given is None or isinstance(given, str):
        return [given] * texts
    words = _listed(given)
    if len(words) != texts or not all(isinstance(word, str) for word in words):
        raise UsageError(
            f"{option(name)} is not one text, or one for each of {texts}",
            "give one, or a list of as many as there are texts",
        )
    return list(words)


def words(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One text or several that an option takes; None: none.

    Raises:
        UsageError: it is something else.
    """
    several = _listed(given)
    wrong = [type(each).__name__ for each in several if not isinstance(each, str)]
    if wrong and given is not None:
        raise UsageError(f"{option(name)} is of type {wrong[0]}", "give a str, or several")
    return () if wrong else tuple(several)


def token_names(name: str, given: Names | None) -> tuple[str, ...]:
    """The names of tokens that an option takes; None: of none.

    Raises:
        UsageError: it is something else.
    """
    several = _listed(given)
    if given is None:
        return ()
    wrong = [type(each).__name__ for each in several if not isinstance(each, str | Integral)]
    if wrong:
        raise UsageError(f"{option(name)} is of type {wrong[0]}", "give tokens or positions")
    return tuple(map(str, several))


def one_name(given: str | int | None) -> str | None:
    """The name of a token; a number is a position."""
    return None if given is None else str(given)


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


def head_names(given: HeadNames | None) -> str | None:
    """The names of heads, or of layers, as the command line has them.

    Raises:
        UsageError: it is nothing of that kind.
    """
    if given is None or isinstance(given, str):
        return given
    several = given if isinstance(given, Sequence) and not _is_head(given) else [given]
    return ",".join(_head_name(each) for each in several)


def layer_names(name: str, given: LayerNames | None) -> str | None:
    """The names of layers, as the command line has them.

    Raises:
        UsageError: it is nothing of that kind.
    """
    if given is None or isinstance(given, str):
        return given
    several = given if isinstance(given, list | tuple) else [given]
    if not several or not all(type(each) in (int, str) for each in several):
        raise UsageError(f"{option(name)} names no layers", 'give a number, a list, or "all"')
    return ",".join(map(str, several))


def which_heads(
    layers: HeadNames | None, heads: HeadNames | None, *, everything: bool = False
) -> HeadOptions:
    """The record that runs take; raises what `head_names` raises."""
    return HeadOptions(head_names(layers), head_names(heads), everything)


def _head_name(given: object) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if _is_head(given):
        return str(Head(*given))  # type: ignore[misc]
    raise UsageError(f"{given!r} names no head", 'give one as "L1H2" or (1, 2)')


def _is_head(given: object) -> bool:
    two = isinstance(given, tuple) and len(given) == 2
    return two and all(isinstance(each, int) for each in given)  # type: ignore[attr-defined]
