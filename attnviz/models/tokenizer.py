"""A text to tokens, with exact character offsets; the same for every engine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from attnviz.data.tokens import Token
from attnviz.errors import ModelError
from attnviz.models.folder import MERGES, TOKENIZER

END = "<|endoftext|>"


@dataclass(frozen=True)
class TextTokenizer:
    """A byte-level tokenizer, and the beginning token that may stand in front of a text."""

    backend: Tokenizer
    bos_id: int | None

    def encode(self, text: str, *, bos: bool, special: bool) -> tuple[Token, ...]:
        """The tokens of a text.

        Args:
            text: any text without lone surrogates.
            bos: put a beginning token in front.
            special: read `<|endoftext|>` in the text as the special token; otherwise
                it is text like any other.
        """
        self.backend.encode_special_tokens = not special
        encoding = self.backend.encode(text, add_special_tokens=False)
        tokens = [
            Token(i, id_, text[start:end], start, end)
            for i, (id_, (start, end)) in enumerate(
                zip(encoding.ids, encoding.offsets, strict=True)
            )
        ]
        tokens = _mark_parts(tokens, text)
        if bos and self.bos_id is not None:
            tokens.insert(0, Token(0, self.bos_id, "", 0, 0, special=True))
        return numbered(tokens)


def numbered(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The same tokens with indices from 0."""
    return tuple(replace(token, index=i) for i, token in enumerate(tokens))


def load_tokenizer(folder: Path, bos_id: int | None) -> TextTokenizer:
    """The tokenizer of a model folder: tokenizer.json, or GPT-2's vocab.json and merges.txt.

    Raises:
        ModelError: the files are missing or damaged.
    """
    vocabulary, merges = (folder / name for name in MERGES)
    try:
        if (folder / TOKENIZER).is_file():
            return TextTokenizer(Tokenizer.from_file(str(folder / TOKENIZER)), bos_id)
        if vocabulary.is_file() and merges.is_file():
            backend = Tokenizer(BPE.from_file(str(vocabulary), str(merges)))
            backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
            backend.add_special_tokens([END])
            return TextTokenizer(backend, bos_id)
    except Exception as error:  # tokenizers raises plain Exception
        raise ModelError(
            f"the tokenizer in {str(folder)!r} cannot be read ({error})", "save it again"
        ) from None
    raise ModelError(
        f"the folder {str(folder)!r} has no {TOKENIZER}",
        "save the tokenizer beside the model (tokenizer.save_pretrained)",
    )


def _mark_parts(tokens: list[Token], text: str) -> list[Token]:
    """Number the tokens that share a character: byte-level pieces of one letter."""
    marked: list[Token] = []
    group: list[Token] = []
    for token in tokens:
        if group and not _shares_character(group[-1], token, text):
            marked += _numbered_parts(group)
            group = []
        group.append(token)
    return marked + _numbered_parts(group)


def _shares_character(before: Token, token: Token, text: str) -> bool:
    """Do the two overlap in the source? A leading space belongs to the first piece alone."""
    start = token.start
    while start < token.end and text[start] == " ":
        start += 1
    return start < before.end and start < token.end


def _numbered_parts(group: list[Token]) -> list[Token]:
    if len(group) < 2:
        return group
    return [replace(token, part=(i, len(group))) for i, token in enumerate(group, start=1)]
