"""A layer of a transformers model at work: what hooks on its modules see in one run."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import LayerParts
from attnviz.models.huggingface.residual import is_norm


@dataclass
class Seen:
    """A layer at work: what its hooks saw in the turn that `parts` names.

    x, x_after, normed, attention_out (n_q, d), source (n_k, d), as in `HeadTrace`; `outputs`
    (n_q, d) of the modules outside attention, in the order of their calls; `reads` (n_q, d): the
    inputs of the norms among them; `mlp`: the width of the hidden layer; `final` (d): the
    vector at position `at` before the output layer. `own_at`: how many of the outputs came
    before attention_out. `other`: the other attention of the same layer, in the decoder of a
    pair; `other_out` (n_q, d): its output; `other_at`: how many of the outputs came before it.
    """

    parts: LayerParts
    other: LayerParts | None = None
    at: int = -1
    turn: int = 0
    call: AttentionCall = field(init=False)
    x: Tensor = field(init=False)
    x_after: Tensor = field(init=False)
    normed: Tensor = field(init=False)
    source: Tensor = field(init=False)
    attention_out: Tensor = field(init=False)
    other_out: Tensor = field(init=False)
    own_at: int = 0
    other_at: int = 0
    outputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    reads: dict[nn.Module, Tensor] = field(default_factory=dict)
    mlp: int | None = None
    final: Tensor | None = None

    @property
    def now(self) -> bool:
        """Whether the run that is recorded is under way."""
        return self.turn == self.parts.turn

    def on_call(self, call: AttentionCall) -> None:
        if call.module is self.parts.attention and self.now:
            self.call = call

    def before_layer(self, _: object, args: Any, named: Any) -> None:
        self.turn += 1
        if self.now:
            self.x = (args[0] if args else named["hidden_states"])[0].clone()  # some add in place

    def after_layer(self, _: object, _args: Any, output: Any) -> None:
        if self.now:
            self.x_after = _first(output)[0].clone()

    def after_output_projection(self, _: object, _args: Any, output: Tensor) -> None:
        if self.now:
            self.attention_out, self.own_at = output[0].clone(), len(self.outputs)

    def after_other_projection(self, _: object, _args: Any, output: Tensor) -> None:
        if self.now:
            self.other_out, self.other_at = output[0], len(self.outputs)

    def before_query_projection(self, _: object, args: Any) -> None:
        if self.now:
            self.normed = args[0][0]

    def before_key_projection(self, _: object, args: Any) -> None:
        if self.now:
            self.source = args[0][0]

    def after_module(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep what a module outside attention gives for each token, and the MLP's width."""
        made = _first(output)
        if not self.now or not isinstance(made, Tensor) or made.numel() != self.x.numel():
            return
        if made.size(-1) == self.x.size(-1):
            # OPT's MLP runs on (n, d), others on (1, n, d)
            self.outputs.append((module, made.reshape(len(self.x), -1).clone()))
            if is_norm(module):
                self.reads[module] = args[0].reshape(len(self.x), -1)
            weight = getattr(module, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                self.mlp = int(args[0].size(-1))  # the last such module leads back to d

    def before_output_layer(self, _: object, args: Any) -> None:
        self.final = args[0][0, self.at] if args[0].dim() == 3 else None

    def hooks(self, model: Any) -> Iterator[Any]:
        """Attach the hooks to the layer and to the model's output layer; their handles."""
        parts, others = self.parts, [] if self.other is None else [self.other]
        yield parts.layer.register_forward_pre_hook(self.before_layer, with_kwargs=True)
        yield parts.layer.register_forward_hook(self.after_layer)
        yield parts.output.register_forward_hook(self.after_output_projection)
        for role, hook in (("Q", self.before_query_projection), ("K", self.before_key_projection)):
            projection = parts.projections.get(role) or parts.projections["QKV"]
            # before a hook of the user's: it is a part of what the projection does
            yield projection.register_forward_pre_hook(hook, prepend=True)
        for other in others:
            yield other.output.register_forward_hook(self.after_other_projection)
        for module in parts.outside(*others):
            yield module.register_forward_hook(self.after_module)
        if model.get_output_embeddings() is not None:
            head = model.get_output_embeddings()
            yield head.register_forward_pre_hook(self.before_output_layer, prepend=True)


def _first(output: Any) -> Any:
    """A module's output; the first one where it gives several."""
    return output[0] if isinstance(output, tuple) else output


def is_rotary(model: nn.Module) -> bool:
    """Whether queries and keys are turned by their positions, in some layer at least."""
    return any("rotary" in type(module).__name__.lower() for module in model.modules())
