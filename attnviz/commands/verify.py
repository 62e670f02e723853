"""`attnviz.verify`: how exact a capture is."""

from attnviz.kit import options as g
from attnviz.kit.option import feature
from attnviz.kit.prepare import verify as run_verify
from attnviz.kit.values import AnyModel, loaded
from attnviz.records.trace import Verified


@feature()
def verify(
    text: str,
    model: AnyModel = "builtin",
    *,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    target: g.TargetText = None,
) -> Verified:
    """Compare a model's output with and without capture, and its weights with eager attention.

    Every row of every layer is checked: its weights times the values are what the model's attention
    function returned.

    >>> attnviz.verify("a fluffy blue creature").exact
    True

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        The largest differences, over all and by layer, whether they are `exact`, as far as float32
        can be, and the `fingerprint` of all bytes of the weights.

    Raises:
        UsageError: transformers does not have this model.
        ModelError: the weights of the model's attention function are not known; or the matrices
            of all layers, or the model in float64, do not fit into memory.
        AttnvizError: the text, the model or an option cannot be used.
    """
    model = loaded(model)
    options = model._text_options(bos, special, truncate, target)
    from attnviz.models.weights import with_all_bytes  # torch

    return run_verify(with_all_bytes(model._loaded), model._source, text, options)
