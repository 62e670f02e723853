"""The read-outs in a model's folder, checked before one is used."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from attnviz.models.folder.files import cut, damaged, foreign, tensor_shapes
from attnviz.records.heads import ReadOut
from attnviz.records.meaning import MOMENTS, Maps

READOUTS = "readouts.safetensors"
LARGEST_READOUTS = 1 << 24
"""The most bytes of the file; those of the built-in model have half a million."""


def map_name(name: str, head: object) -> str:
    """The name of the tensor that holds a read-out's maps around a head."""
    return f"{name}.{head}"


def read_maps(folder: Path | None, readouts: Iterable[ReadOut], width: int) -> Maps:
    """Read the maps of the read-outs that a card names, for streams of this width.

    None where the folder has no such file; a file has all of them, and finite.
    """
    path = None if folder is None else folder / READOUTS
    if path is None or not path.is_file():
        return {}
    from safetensors.numpy import load_file

    with foreign(folder):
        if path.stat().st_size > LARGEST_READOUTS:
            raise ValueError(f"{READOUTS} has more than {LARGEST_READOUTS:,} bytes")
    shapes = tensor_shapes(path)
    with foreign(folder):
        tensors = load_file(path)
    maps = {}
    for readout in readouts:
        wanted = (len(MOMENTS), width + 1, len(readout.classes))
        for each in readout.heads:
            name = map_name(readout.name, each.head)
            if shapes.get(name) != wanted or not np.isfinite(tensors[name]).all():
                wrong = ValueError(f"{READOUTS} has no finite {cut(name)} of the shape {wanted}")
                raise damaged(folder, wrong)
            maps[readout.name, each.head] = tensors[name].astype(np.float32)
    return maps
