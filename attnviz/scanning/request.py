"""What a scan is asked to do."""

from dataclasses import dataclass, field

from attnviz.data.scan import Split
from attnviz.runs.options import HeadOptions


@dataclass(frozen=True)
class Request:
    """What is asked: the corpus, how it is cut, and which heads are counted.

    `paths`: files, folders, patterns or URLs; `key`: where a JSON object, or a row of Parquet,
    holds its text; `length`: the most tokens of a window; `shard`: about how many bytes are counted
    at a time, None: as many as a corpus of this size wants; `documents`: how many are read, None:
    all; `seed`: which windows are drawn as examples.
    """

    paths: tuple[str, ...]
    split: Split = "file"
    key: str = "text"
    length: int = 512
    shard: int | None = None
    documents: int | None = None
    seed: int = 0
    heads: HeadOptions = field(default_factory=HeadOptions)
