"""What heads add to the logits of tokens, from each key, on the direct path."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.frozen.run import FrozenRun, gradients


def writes(
    run: FrozenRun, positions: Sequence[int], ids: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For each layer with attention, the addends (h, S, n) to S logits, from the last layer on.

    φ_j = a_j · v_j W_O · u: the weight of the query at a position on key j, times what its value
    adds to the logit of a token there. u is the token's vector in the output layer, behind the
    last norm, which is held at what it was. What later layers make of it does not count.

    Raises:
        ModelError: the logits are no sums.
    """
    output, stream = run.output, run.streams[-1]
    if output is None:
        raise ModelError(
            "the logits of this model are not a sum over its parts",
            "it caps them, or has no output layer that attnviz can follow; use another model",
        )
    most, at = run.at_once, list(positions)
    parts = [slice(i, i + most) for i in range(0, len(at), most)]
    rows = output.weight[list(ids)]  # (S, d)

    def gradient(part: slice) -> Tensor:
        own = at[part]

        def logits(x: Tensor) -> Tensor:
            return (output.reads(x)[range(len(own)), own] * rows[part]).sum(dim=-1)

        return gradients(logits, stream.new_zeros((len(own), *stream.shape)))[0][0]  # (S, n, d)

    below = list(map(gradient, parts))
    for number in reversed(range(len(run.layers))):
        both = [run.through(number, each)[0] for each in below]
        below = [each for each, _ in both]
        attention = run.layers[number].attention
        if attention is None:
            continue
        added = [to[range(to.size(0)), at[part]] for part, (_, to) in zip(parts, both, strict=True)]
        directions = torch.einsum("sd,hvd->hsv", torch.cat(added), attention.w_o)
        of_keys = directions @ attention.values.transpose(1, 2)  # (h, S, n)
        yield number, (attention.weights(torch.tensor(at)) * of_keys).cpu().double().numpy()
