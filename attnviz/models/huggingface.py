"""A model through transformers, of any architecture that can switch its attention function."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attnviz.data.capture import Kind, ModelIdentity, Wanted
from attnviz.data.card import ModelCard
from attnviz.data.heads import Head
from attnviz.data.tokens import Token
from attnviz.data.trace import HeadTrace
from attnviz.errors import ModelError, UsageError
from attnviz.models.card import read_card
from attnviz.models.checkpoint import check_finite, lacks, other_shape
from attnviz.models.config import folder_sizes
from attnviz.models.dissect import dissected
from attnviz.models.folder import damaged, read_config, weight_files
from attnviz.models.handover import Handover
from attnviz.models.loaded import Consumer, no_target
from attnviz.models.registry import AttentionCall, kind_of, layer_of, recording
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer
from attnviz.models.tracing import head_trace


class _LastLayerSeen(Exception):
    """Ends a forward pass after the last layer that was asked for."""


@dataclass(frozen=True)
class HuggingFaceModel:
    """A transformers model with its tokenizer; `model` may carry a language-model head.

    `kind`: which attention of an encoder-decoder is handed over.
    """

    model: Any
    identity: ModelIdentity
    card: ModelCard
    tokenizer: TextTokenizer
    causal: bool
    kind: Kind = "self"

    def versions(self) -> Mapping[str, str]:
        import transformers

        return {"torch": str(torch.__version__), "transformers": transformers.__version__}

    def run(
        self,
        ids: Sequence[int],
        wanted: Wanted,
        consume: Consumer,
        target: Sequence[int] = (),
    ) -> None:
        names = {module: name for name, module in self.model.named_modules()}
        handover = Handover(wanted, consume)

        def listen(call: AttentionCall) -> None:
            layer, kind = layer_of(names[call.module]), kind_of(names[call.module])
            if self.kind not in ("self", kind):
                return
            if layer in wanted.heads:
                for queries in handover.rows(call.q.size(1), call.k.size(1), call.q.size(0)):
                    handover.take(layer, queries, call.weights(queries))
            if layer == wanted.last_layer:
                raise _LastLayerSeen

        inputs = {"input_ids": torch.tensor([list(ids)])}
        if self.kind != "self":
            inputs["decoder_input_ids"] = torch.tensor([[self._start(), *target[:-1]]])
        with torch.inference_mode(), recording(self.model, listen), suppress(_LastLayerSeen):
            self.model.base_model(**inputs, use_cache=False)

    def write(self, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
        if self.kind == "self":
            raise no_target(self.identity.name)
        if not hasattr(self.model, "generate"):
            raise UsageError(f"{self.identity.name} has no output layer", "give a --target")
        with torch.inference_mode():
            made = self.model.generate(
                torch.tensor([list(ids)]),
                max_new_tokens=min(LONGEST, self.tokenizer.context - 1),
                do_sample=False,
                num_beams=1,
            )
        return self.tokenizer.written(made[0, 1:].tolist())

    def _start(self) -> int:
        """The token that a decoder begins with; older configurations leave it to another."""
        sources = (self.model.config, getattr(self.model, "generation_config", None))
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        found = (getattr(source, name, None) for name in names for source in sources)
        start = next((id_ for id_ in found if isinstance(id_, int)), None)
        if start is None:
            raise ModelError(
                f"the configuration of {self.identity.name} names no token to begin with",
                "add decoder_start_token_id to its config.json",
            )
        return start

    def read_target(self, text: str) -> tuple[Token, ...]:
        if self.kind == "self":
            raise no_target(self.identity.name)
        return self.tokenizer.encode(text, bos=False, special=False)

    def trace(self, text: str, tokens: Sequence[Token], head: Head, query: int) -> HeadTrace:
        if self.kind in ("cross", "decoder"):
            raise UsageError(
                f"explain does not write out the {self.kind} attention of an encoder-decoder",
                "use --kind encoder, or attnviz show",
            )
        model = self.model.get_encoder() if self.kind == "encoder" else self.model
        recorded = dissected(model, [token.id for token in tokens], head, query)
        return head_trace(recorded, self, text, tokens)


LONGEST = 128
"""Tokens of a target that a model writes by itself."""


def load_huggingface(
    folder: Path, name: str, revision: str | None, kind: Kind | None = None
) -> HuggingFaceModel:
    """A local folder through transformers; nothing is fetched and no remote code is run.

    Raises:
        ModelError: an architecture that cannot be recorded, or a file that is missing or
            damaged.
        UsageError: a kind of attention that the model does not have.
    """
    sizes = folder_sizes(folder, kind)
    card = read_card(folder, name, sizes.heads_per_layer)
    tokenizer = load_tokenizer(folder, sizes, card.bos)
    model = _load_weights(folder)
    if not model._can_set_attn_implementation():
        raise ModelError(
            f"the architecture {sizes.architecture!r} keeps its attention to itself, and attnviz "
            "cannot capture it yet",
            "use a model such as GPT-2, Llama, Qwen, Mistral or BERT",
        )
    identity = ModelIdentity(
        name=name,
        architecture=sizes.architecture,
        heads_per_layer=sizes.heads_per_layer,
        parameters=model.num_parameters(),
        engine="transformers",
        revision=revision,
    )
    causal = sizes.kind == "decoder" if sizes.kind != "self" else _is_causal(model)
    return HuggingFaceModel(model, identity, card, tokenizer, causal, sizes.kind)


def _is_causal(model: Any) -> bool:
    """Whether its attention looks back only, as its modules say."""
    return any(getattr(module, "is_causal", False) for module in model.modules())


def _load_weights(folder: Path) -> Any:
    """The model in float32, with every weight of the folder checked."""
    from transformers.utils import logging

    weight_files(folder)  # says best what is missing
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, report = _model_class(folder).from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # reported below, by name and shape
            output_loading_info=True,
        )
    except Exception as error:  # a damaged file or setting can raise anything in there
        raise damaged(folder, error) from None
    for name, found, expected in sorted(report["mismatched_keys"]):
        raise other_shape(folder, name, tuple(found), tuple(expected))
    for name in sorted(report["missing_keys"]):
        raise lacks(folder, name)
    check_finite(dict(model.named_parameters()), folder)
    return model.eval().requires_grad_(False)


def _model_class(folder: Path) -> Any:
    """The class that config.json names; where it names none that fits, the bare model.

    GPT-2's output is tied to its embedding, so its language model is always whole.
    """
    import transformers

    config = read_config(folder)
    kind = config.get("model_type")
    names = [*(config.get("architectures") or ())][:1]
    if kind == "gpt2" and names in ([], ["GPT2Model"]):
        names = ["GPT2LMHeadModel"]
    for name in names:
        named = getattr(transformers, str(name), None)
        if getattr(getattr(named, "config_class", None), "model_type", None) == kind:
            return named
    return transformers.AutoModel
