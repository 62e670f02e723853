"""What the weights of a model say of its heads.

model ─► one token's run, held fixed ─► each head's weights ─► copying, composition
"""

from typing import TYPE_CHECKING

from attnviz.errors import ModelError
from attnviz.models.loaded import freezing
from attnviz.records.capture import FloatArray
from attnviz.records.metrics import descending
from attnviz.records.parts import Circuits, Through

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def circuits_of(model: "LoadedModel") -> Circuits:
    """Which heads copy what they attend to, and which read each other.

    Where positions turn queries and keys, only the composition through values is told.

    Raises:
        UsageError: the model has no one residual stream.
        ModelError: this architecture cannot be taken apart, or has nothing of it.
    """
    from attnviz.models.frozen.circuits import compositions, copying, weights_of

    able, tokenizer = freezing(model), model.tokenizer
    run = able.freeze([tokenizer.ordinary_ids()[0]])
    heads = weights_of(run)
    ways: tuple[Through, ...] = ("value",) if run.rotary else ("query", "key", "value")
    composed, expected = dict[Through, FloatArray](), dict[Through, float]()
    if len({head.layer for head in heads}) > 1:
        for through in ways:
            composed[through], expected[through] = compositions(heads, through)
    copied = sorted(copying(run, heads), key=lambda each: descending(each.eigenvalues))
    if not copied and not composed:
        raise ModelError(
            f"{model.identity.name} has one layer and no output layer, so no circuits",
            "use another model",
        )
    return Circuits(model.identity, tuple(heads), copied, composed, expected)
