"""Other texts as sources of a run's activations, as means or one text at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.prompts import read_prompt
from attnviz.inputs.text import read_file
from attnviz.inputs.vectors import steering_of, vector_of
from attnviz.kit.intervene import check_memory
from attnviz.kit.option import Call, Cli, needs
from attnviz.kit.options import heads_option
from attnviz.kit.prepare import Prepared, TextOptions, encode, fit, prepare
from attnviz.kit.values import FilePath, texts_of
from attnviz.records.capture import FloatArray
from attnviz.records.interventions import Site, SourceRun

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

MeanBy: TypeAlias = Literal["all", "position"]
"""Over all positions of all texts, or at each position over the texts."""
TextsIn: TypeAlias = FilePath | Sequence[str] | None
MeanFrom: TypeAlias = Annotated[
    TextsIn,
    Cli(Path | None),
    heads_option(
        "--mean-from",
        metavar="FILE",
        help="With --with mean, take the mean over all positions of these texts: one per line, or "
        "JSON lines with text.",
    ),
]
MeanTaken: TypeAlias = Annotated[
    MeanBy,
    heads_option(
        "--mean-by",
        help="With --mean-from, take it over all positions, or at each position over texts of one "
        "length.",
    ),
]
OF_MEANS = (needs("mean_from", "replacement", "mean"), needs("mean_by", "mean_from", add="FILE"))
Vectors: TypeAlias = Mapping[Site, FloatArray]


@dataclass(frozen=True, eq=False)
class OtherTexts:
    """Texts that activations are taken from.

    `name`: of the file that they are read from. `lines`: the number of each in it. `_found`: the
    results for each model so far, kept as long as the texts.
    """

    texts: Sequence[str]
    name: str = ""
    lines: Sequence[int] = ()
    _found: dict[tuple[Any, ...], tuple["LoadedModel", Any]] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """`200 texts of colors.jsonl`."""
        return amount(len(self.texts), "text") + (f" of {self.name}" if self.name else "")

    def ids(self, model: "LoadedModel", options: TextOptions) -> list[list[int]]:
        """The tokens of each text.

        Raises:
            UsageError: one does not fit the model; the message names it.
        """
        key = (id(model), options)
        if key not in self._found:
            self._found[key] = model, [self._ids(i, model, options) for i in range(len(self.texts))]
        ids: list[list[int]] = self._found[key][1]
        return ids

    def _ids(self, i: int, model: "LoadedModel", options: TextOptions) -> list[int]:
        try:
            tokens = encode(model.tokenizer, self.texts[i], replace(options, text_pair=None))
            return [t.id for t in fit(tokens, model.tokenizer.context, options.truncate)[0]]
        except InputError as error:
            where = f"line {self.lines[i]} of {self.name!r}" if self.lines else f"text {i + 1}"
            raise UsageError(f"{where}: {error.wrong}", error.hint) from None

    def means(
        self, model: "LoadedModel", options: TextOptions, sites: Collection[Site], by: MeanBy
    ) -> Vectors:
        """The mean of each site's vectors over these texts: (1, width), or (n, width) by position.

        Every position counts alike, special tokens too. Each text is run once for a model.

        Raises:
            UsageError: positions are wanted, and the texts have several lengths.
        """
        key = (id(model), options, frozenset(sites), by)
        if key not in self._found:
            self._found[key] = model, self._means(model, options, sites, by)
        means: Vectors = self._found[key][1]
        return means

    def _means(
        self, model: "LoadedModel", options: TextOptions, sites: Collection[Site], by: MeanBy
    ) -> Vectors:
        every = self.ids(model, options)
        lengths = [len(ids) for ids in every]
        if by == "position" and len(set(lengths)) > 1:
            raise UsageError(
                f"the {self.named} have {min(lengths)} to {max(lengths)} tokens, so that positions "
                "do not correspond",
                f"leave {option('mean_by')} out, or give texts of one length",
            )
        self._check_memory(model, options, sites)
        sums = dict[Site, NDArray[np.float64]]()
        for ids in every:
            for site, vectors in model.site_vectors(ids, sites).items():
                own = vectors.astype(np.float64)
                own = own if by == "position" else own.sum(axis=0, keepdims=True)
                sums[site] = sums.get(site, 0.0) + own
        count = len(every) if by == "position" else sum(lengths)
        return {site: (total / count).astype(np.float32) for site, total in sums.items()}

    def _check_memory(
        self, model: "LoadedModel", options: TextOptions, sites: Collection[Site]
    ) -> None:
        lengths, alone = [*map(len, self.ids(model, options))], replace(options, text_pair=None)
        check_memory(prepare(model, self.texts[lengths.index(max(lengths))], alone), sites)

    def last_vectors(
        self, model: "LoadedModel", options: TextOptions, layers: Sequence[int]
    ) -> FloatArray:
        """The stream at the inputs of layers, at each text's last token: (layers, texts, d)."""
        sites = [Site("residual", layer) for layer in layers]
        self._check_memory(model, options, sites)
        every = [model.site_vectors(ids, sites) for ids in self.ids(model, options)]
        return np.stack([np.stack([vectors[site][-1] for vectors in every]) for site in sites])

    def means_for(self, prepared: Prepared, sites: Collection[Site], by: MeanBy) -> Vectors:
        """The means, for a run of this text.

        Raises:
            InputError: they are by position, and the text has another number of positions.
        """
        means = self.means(prepared.model, prepared.options, sites, by)
        length, n = len(next(iter(means.values()))), len(prepared.ids)
        if by == "position" and length != n:
            raise InputError(
                f"the text has {n} tokens, and the {self.named} have {length}, so that positions "
                "do not correspond",
                f"leave {option('mean_by')} out",
            )
        return means

    def long_enough(self, prepared: Prepared) -> list[list[int]]:
        """The tokens of other texts that are at least as long, cut to the length of this text.

        Raises:
            InputError: there is none.
        """
        own = prepared.ids
        every = self.ids(prepared.model, prepared.options)
        fitting = [ids[: len(own)] for ids in every if len(ids) >= len(own)]
        others = [ids for ids in fitting if ids != own]
        if not others:
            raise InputError(
                f"the {self.named} have no other text of {amount(len(own), 'token')} or more",
                "give texts that are as long as the text",
            )
        return others

    def drawn(self, prepared: Prepared, draws: int, seed: int) -> list[SourceRun]:
        """Draw up to `draws` other texts that are long enough, without replacement."""
        own, others = prepared.ids, self.long_enough(prepared)
        chosen = np.random.default_rng([seed, *own]).permutation(len(others))[:draws]
        return [SourceRun(others[i], range(len(own))) for i in chosen.tolist()]


def other_texts(given: Any) -> OtherTexts | None:
    """The texts of a file, one per line, or those that are given; None without any.

    A file whose first line is an object of JSON has one on each line, with a `text`.

    Raises:
        InputError: the file has none, or a line is not a text.
    """
    if given is None or isinstance(given, OtherTexts):
        return given
    if not isinstance(given, str | PathLike):
        return OtherTexts(texts_of(given))
    path = Path(given)
    read = enumerate(read_file(path).split("\n"), start=1)
    lines = [(number, line.removesuffix("\r")) for number, line in read if line.strip()]
    if not lines:
        raise InputError(f"{str(path)!r} has no text", "give a file with a text on each line")
    objects = lines[0][1].startswith("{")
    texts = [_text_of(path, number, line) if objects else line for number, line in lines]
    return OtherTexts(texts, path.name, [number for number, _ in lines])


def read_once(call: Call[Any]) -> Call[Any]:
    """A call of the command line with its files read; other texts are run once for all lines."""
    given = (name for name in ("mean_from", "resample_from") if call.options.get(name))
    read: dict[str, Any] = {name: other_texts(call[name]) for name in given}
    if "direction" in call.options:
        read["direction"] = vector_of(call["direction"])
    if "add" in call.options:
        read["add"] = steering_of(call["add"], call["strength"])
    return replace(call, options={**call.options, **read})


def _text_of(path: Path, number: int, line: str) -> str:
    try:
        return read_prompt(line)["text"]
    except InputError as error:
        raise InputError(f"line {number} of {str(path)!r}: {error.wrong}", error.hint) from None
