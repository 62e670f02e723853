"""Everyday sentences that nobody saw who worked on the data: `python -m making.everyday PART`.

`mystery`: of how many texts the whole continuation of the right suspect is the likeliest of the
suspects'. `translation`: how many sentences equal a listed rendering. The lists are in
`tests/sentences/everyday`; no decision is to be based on them.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.models.folder.files import bundled_folder
from making.probe import WorldProbe
from making.sentences import SENTENCES

FOLDER = SENTENCES / "everyday"


def mystery(model: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether the suspect with the likeliest continuation is the guilty one."""
    probe = WorldProbe.open(_folder(model))

    def log_probability(ids: list[int], added: list[int]) -> float:
        with torch.inference_mode():
            rows = probe.model(torch.tensor([ids + added]))[0].log_softmax(-1)
        return sum(float(rows[len(ids) - 1 + i, id_]) for i, id_ in enumerate(added))

    def right(row: Mapping[str, Any]) -> bool:
        ids, _ = probe.encoder.typed(row["text"])
        words = {name: name.replace("'s", " 's").split() for name in row["suspects"]}
        added = {
            n: [i for word in said for i in probe.encoder.word(word)] for n, said in words.items()
        }
        guilty: str = row["guilty"]
        found: str = max(added, key=lambda name: log_probability(ids, added[name]))
        return found == guilty

    return right


def translation(model: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a sentence's French is a listed one; case, hyphens and the last mark do not count."""
    loaded = load(Source(model))

    def right(row: Mapping[str, Any]) -> bool:
        written = prepare(loaded, row["en"], TextOptions()).empty.target
        return _plain(written or "") in map(_plain, row["fr"])

    return right


def _plain(text: str) -> str:
    alike = text.lower().replace("’", "'").replace("œ", "oe").replace("-", "")
    return re.sub(r"\s+", "", alike).strip(".?!,;: ")


def _folder(model: str) -> Path:
    return bundled_folder(model) if model == "builtin" else Path(model)


PARTS = {"mystery": (mystery, "builtin"), "translation": (translation, "translator")}


def main(
    part: Annotated[str, typer.Argument(help=", ".join(PARTS))],
    model: Annotated[str, typer.Option("-m", "--model", help="a bundled model or a folder")] = "",
) -> None:
    """Measure a bundled model on everyday sentences."""
    torch.set_num_threads(1)
    right, bundled = PARTS[part]
    lines = (FOLDER / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [*map(right(model or bundled), map(json.loads, lines))]
    typer.echo(f"{part}: {sum(found)} of {len(found)}")


if __name__ == "__main__":
    typer.run(main)
