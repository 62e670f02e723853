"""The worked examples, which need no model."""

from typing import Literal, TypeAlias

import numpy as np

from attnviz.records.trace import Matrices

Example: TypeAlias = Literal["three-inputs", "multi-head"]

CHARACTERS = ("楚", "留", "香")
WIDTH, HEADS = 6, 3  # of the multi-head example: three heads of two numbers each


def three_inputs() -> Matrices:
    """Self-attention by hand, with whole numbers: three inputs of four numbers.

    Karim 2019, "Illustrated: Self-Attention".
    """
    return Matrices(
        x=np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], float),
        w_key=np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], float),
        w_query=np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], float),
        w_value=np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], float),
        labels=("x1", "x2", "x3"),
    )
