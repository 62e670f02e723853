"""`attnviz.generate`: an answer, and what each part of it attended to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnviz.commands.generate.answer import Answer, Check, Unit
from attnviz.commands.generate.rows import SHARE, share_rows
from attnviz.commands.generate.run import Answering, Writing, answering, chat_prompt
from attnviz.commands.generate.shown import by_segment
from attnviz.commands.show.capture import AttentionCapture
from attnviz.draw.titles import amount
from attnviz.errors import UsageError
from attnviz.inputs.prompts import By, Document, Prompt, cut_prompt, with_documents
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import notes_of
from attnviz.kit.values import (
    HeadNames,
    Messages,
    check_choices,
    check_count,
    check_number,
    check_one_of,
    check_word,
    documents_of,
    prompt_of,
    recorded,
    which_heads,
    words,
)
from attnviz.records.exhibit import PictureLook
from attnviz.records.heads import listed
from attnviz.records.prompt import Chat, Sampling
from attnviz.records.rows import Column, Row, shortest
from attnviz.records.tokens import Token
from attnviz.records.transforms import How

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class AttentionAnswer:
    """An answer, and what each part of it attended to; made by `attnviz.generate`.

    >>> answer = attnviz.generate("the creature was", max_new_tokens=2)
    >>> [row["segment"] for row in answer.shares("token")][:2]
    ['sink', '1']
    """

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

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the answer and its prompt: beams, a chat's template, a cut."""
        return (*self._asked.model_notes, *self._asked.notes, *notes_of([self._answer.capture]))

    def __repr__(self) -> str:
        name, size = self._answer.capture.model.name, amount(len(self.tokens), "token")
        return f"<AttentionAnswer {name}, {size}, {listed(self._answer.choice.heads)}>"

    def shares(self, rows: Unit = "sentence") -> list[Row]:
        """A row for each part of the answer and each segment, as `-f jsonl` writes them.

        Args:
            rows: a part is a "sentence", a "word" or a "token"; or the whole answer in a "head".

        Raises:
            UsageError: another kind of row.
        """
        check_one_of("rows", rows, Unit)
        told: list[Row] = shortest(list(share_rows(self._answer.shares(rows))))
        return told

    def to_columns(self, rows: Unit = "sentence") -> dict[str, Column]:
        """The same by column, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return SHARE.columns(self.shares(rows))

    def figure(self, rows: Unit = "sentence", **look: Any) -> "Figure":
        """The shares as a picture.

        Args:
            rows: as for `shares`.
            look: `cmap`, `dpi` and `title`, as for `attnviz.show`.

        Raises:
            UsageError: another kind of row, or no such colour map.
        """
        from attnviz.draw.picture.heatmap import draw
        from attnviz.draw.picture.paint import options_of

        check_one_of("rows", rows, Unit)
        options = options_of(PictureLook(**look), None)
        return draw(by_segment(self._answer.shares(rows)), options).figure

    def check(self) -> Check:
        """Delete one segment after another, and measure what it does to the answer (nats).

        Raises:
            UsageError: there is no segment before the last one.
        """
        return self._asked.check(self._answer)


@recorded
def generate(
    prompt: str | Messages,
    model: AnyModel = "builtin",
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
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    reduce: How = "mean",
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> AttentionAnswer:
    """Let a model go on with a prompt, and record what each new token attended to.

    >>> attnviz.generate("the creature was", target="blue")
    <AttentionAnswer builtin, 1 token, L4H0>

    Args:
        prompt: a text; or the messages of a chat, or an object with these as `messages` and
            perhaps `documents` and `tools`, which go through the model's own template.
        model: a name as for `load_model`, or a loaded model.
        docs: texts by name, which stand before the prompt.
        segments: parts of the prompt: `"NAME=/regex/"`, `"NAME=START:END"`.
        by: cut the prompt into a "sentence", "line" or "paragraph" each.
        target: an answer that is given, in place of one that is written.
        max_new_tokens: the most tokens to write.
        temperature: sample each token at this temperature; 0 always takes the likeliest.
        top_p: sample from the likeliest tokens whose probabilities add up to this.
        seed: of the random numbers.
        stop: texts that end the answer.
        heads, layers: as for `attnviz.capture`; None means the retrieval heads where they are
            known, else all.
        reduce: how their rows are joined for shares: "mean" or "max".
        bos, special, truncate: as for `attnviz.capture`.

    Raises:
        AttnvizError: the prompt, the model or an option cannot be used; the message says
            what to do instead.
    """
    check_one_of("reduce", reduce, How)
    check_choices(by=(by, By))
    check_count("max_new_tokens", max_new_tokens)
    check_count("seed", seed, 0)
    check_number("temperature", temperature, 0, 100)
    check_number("top_p", top_p, 0, 1)
    check_word("target", target)
    documents, parts = documents_of(docs), words("segments", segments)
    given = prompt_of(prompt)
    model = loaded(model)
    options = text_options(model, bos, special, truncate)
    if isinstance(given, Chat):
        if documents or parts or by:
            raise UsageError("a chat is the whole prompt", "leave its segments out")
        read = chat_prompt(model._loaded, given)
        options = replace(options, special=True, bos=False)
    else:
        read = _prompt(given, documents, parts, by)
    sampling = Sampling(max_new_tokens, temperature, top_p, seed)
    writing = Writing(sampling, words("stop", stop), target)
    which = which_heads(layers, heads)
    asked = answering(model._loaded, read, options, writing, which, reduce, each_head=True)
    return AttentionAnswer(asked, asked.answer(asked.tokens_with_rows()))


def _prompt(prompt: str, docs: Mapping[str, str], segments: Sequence[str], by: By | None) -> Prompt:
    if not docs:
        return cut_prompt(prompt, by, segments)
    if segments or by:
        raise UsageError("docs are segments already", "leave segments and by out")
    return with_documents(prompt, [Document(*document) for document in docs.items()])
