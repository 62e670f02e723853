"""Ablation in a transformers model, by hooks before the output projection of a layer.

Letters in the shape comments as in `models/ablate.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from attnviz.data.ablate import Ablated, AblatedRun, Replacement, RunConsumer
from attnviz.models.ablate import batches, log_probability, of_layer, replaced
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.layers import parts_of
from attnviz.models.memory import BATCH_TOKENS

LOGITS = 1 << 26
"""The most logits of a batch, which are all made at once."""


def ablate_transformers(
    model: Any,
    ids: Tensor,
    heads_per_layer: Sequence[int],
    ablations: Sequence[Ablated],
    replacement: Replacement,
    consume: RunConsumer,
    *,
    whole: bool,
) -> None:
    """Run ablations on a causal transformers model; arguments as in `scratch/ablate.py`.

    Raises:
        ModelError: this architecture's output projections cannot be found.
    """
    n, vocabulary = ids.size(1), model.config.get_text_config().vocab_size
    size = max(1, min(BATCH_TOKENS // n, LOGITS // (n * vocabulary)))
    touched = {head.layer for heads in ablations for head in heads}
    parts = parts_of(model, touched) if touched else {}
    projections = {layer: of_layer.output for layer, of_layer in parts.items()}
    for batch in batches(range(len(ablations)), size):
        of_batch = [ablations[i] for i in batch]
        with _projecting(projections, heads_per_layer, of_batch, replacement):
            logits = forward(model, input_ids=ids.expand(len(batch), -1), use_cache=False).logits
        for i, rows in zip(batch, logits, strict=True):  # (n, V)
            followed = log_probability(rows[:-1], ids[0, 1:]) if whole else rows.new_empty(0)
            last = rows[-1].float().cpu().numpy()
            consume(AblatedRun(i, followed.float().cpu().numpy(), last))


@contextmanager
def _projecting(
    projections: Mapping[int, nn.Module],
    heads_per_layer: Sequence[int],
    ablations: Sequence[Ablated],
    replacement: Replacement,
) -> Iterator[None]:
    """Replace the outputs of ablated heads before the output projections."""

    def replacing(layer: int) -> Callable[[nn.Module, Any], Any]:
        def replace(_module: nn.Module, args: Any) -> Any:
            merged, heads = args[0], heads_per_layer[layer]  # (B, n, h·d_v) or (B·n, h·d_v)
            z = merged.reshape(len(ablations), -1, heads, merged.size(-1) // heads).transpose(1, 2)
            changed = replaced(z, of_layer(ablations, layer), replacement)
            return changed.transpose(1, 2).reshape(merged.shape), *args[1:]

        return replace

    with ExitStack() as stack:
        for layer, module in projections.items():
            stack.callback(module.register_forward_pre_hook(replacing(layer)).remove)
        yield
