"""What a scan is asked to do."""

from dataclasses import dataclass, field
from typing import get_args

from attnviz.data.scan import Split
from attnviz.errors import UsageError, option
from attnviz.kit.prepare import HeadOptions

BATCH = 4096
"""The most tokens of a batch, but for a window that is longer by itself."""


@dataclass(frozen=True)
class Request:
    """What is asked: the corpus, how it is cut, and which heads are counted.

    `paths`: files, folders, patterns or URLs; `key`: where a JSON object, or a row of Parquet,
    holds its text; `length`: the most tokens of a window; `shard`: about how many bytes are counted
    at a time, None: as many as a corpus of this size wants; `documents`: how many are read, None:
    all; `seed`: which windows are drawn as examples.

    Raises:
        UsageError: there is no corpus, or a value cannot be meant.
    """

    paths: tuple[str, ...]
    split: Split = "file"
    key: str = "text"
    length: int = 512
    shard: int | None = None
    documents: int | None = None
    seed: int = 0
    heads: HeadOptions = field(default_factory=HeadOptions)

    def __post_init__(self) -> None:
        if not self.paths:
            raise UsageError("there is no corpus", "name files or folders of text")
        if self.split not in get_args(Split):
            known = ", ".join(get_args(Split))
            raise UsageError(f"{option('split', self.split)} is not known", f"use {known}")
        for name, value, least in (("length", self.length, 8), ("max_docs", self.documents, 1)):
            if value is not None and value < least:
                raise UsageError(f"{option(name, value)} is too small", f"give at least {least}")
