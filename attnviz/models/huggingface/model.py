"""A model through transformers, of any architecture."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnviz.data.ablate import Ablated, Replacement, RunConsumer
from attnviz.data.capture import NOTHING, Consumer, FloatArray, Kind, ModelIdentity, Wanted
from attnviz.data.card import ModelCard
from attnviz.data.explain import HeadTrace
from attnviz.data.head import Head
from attnviz.data.predict import LogitConsumer
from attnviz.data.tokens import Token
from attnviz.errors import ModelError, UsageError
from attnviz.models.folder.architecture import reads_no_text, transformers_config
from attnviz.models.folder.card import read_card
from attnviz.models.folder.config import folder_sizes
from attnviz.models.folder.files import PICKLED, damaged
from attnviz.models.folder.sizes import ModelSizes
from attnviz.models.folder.weights import check_finite, lacks, other_shape
from attnviz.models.handover import rows_at_a_time
from attnviz.models.huggingface.ablate import ablate_transformers
from attnviz.models.huggingface.capture import Attention, attention_of, run_and_capture
from attnviz.models.huggingface.dissect import dissected
from attnviz.models.huggingface.predict import predict, vectors
from attnviz.models.huggingface.values import value_norms
from attnviz.models.loaded import no_prediction, no_target, no_values
from attnviz.models.placement import ANYWHERE, Placement, check_weights
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer
from attnviz.models.tracing import head_trace


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

    @property
    def sinks(self) -> bool:
        return any("sink" in name for name, _ in self.model.named_parameters())

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        config = self.model.config.get_text_config()
        heads, n = max(self.identity.heads_per_layer), max(n_queries, n_keys)
        widths = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
        inner = max(widths) if isinstance(widths, list | tuple) else widths
        vectors = n * (12 * config.hidden_size + 3 * inner)  # of the layer at work
        rows = 4 * rows_at_a_time(n_keys, heads) * heads * n_keys
        # its own matrices where it computes eagerly, else its mask at most
        eager = config._attn_implementation == "eager"
        own = 3 * heads * n_queries * n_keys if eager else n_queries * n_keys // 4
        return int(4 * (vectors + rows + own))

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
        run_and_capture(self.model, self.inputs(ids, target), wanted, consume, self.kind)

    def output(
        self,
        ids: Sequence[int],
        target: Sequence[int] = (),
        wanted: Wanted = NOTHING,
        consume: Consumer | None = None,
    ) -> Tensor:
        """What leaves the body (1, n, d), with the wanted heads captured on the way.

        Of a model that has no body of its own (T5), the logits.
        """
        inputs = self.inputs(ids, target)
        if consume is None:
            found = self.model.base_model(**inputs)
        else:
            found = run_and_capture(self.model, inputs, wanted, consume, self.kind, whole=True)
        hidden: Tensor = found.logits if hasattr(found, "logits") else found.last_hidden_state
        return hidden

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        self._check_predicts()
        predict(self.model, self._ids(ids), positions, consume, lens=lens)

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray | None:
        if self.kind not in ("self", "encoder"):
            return None
        model = self.model.get_encoder() if self.kind == "encoder" else self.model
        with torch.inference_mode():
            return vectors(model, self._ids(ids), position)

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        if self.kind != "self":
            raise no_values(self.identity.name)
        with torch.inference_mode():
            return value_norms(self.model, self._ids(ids), self.identity.heads_per_layer)

    def ablate(
        self,
        ids: Sequence[int],
        ablations: Sequence[Ablated],
        replacement: Replacement,
        consume: RunConsumer,
        *,
        whole: bool,
    ) -> None:
        self._check_predicts()
        heads = self.identity.heads_per_layer
        given = self.model, self._ids(ids), heads, ablations, replacement, consume
        with torch.inference_mode():
            ablate_transformers(*given, whole=whole)

    def _check_predicts(self) -> None:
        if self.kind != "self" or not self.causal or self.model.get_output_embeddings() is None:
            raise no_prediction(self.identity.name)

    def inputs(self, ids: Sequence[int], target: Sequence[int]) -> dict[str, Any]:
        """What its forward pass is given."""
        inputs: dict[str, Any] = {"input_ids": self._ids(ids), "use_cache": False}
        if self.kind != "self":
            inputs["decoder_input_ids"] = self._ids([self._start(), *target[:-1]])
        return inputs

    def _ids(self, ids: Sequence[int]) -> Tensor:
        """(1, n), where the model is."""
        return torch.tensor([list(ids)], device=self.model.device)

    def write(self, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
        if self.kind == "self":
            raise no_target(self.identity.name)
        if not hasattr(self.model, "generate"):
            raise UsageError(f"{self.identity.name} has no output layer", "give a --target")
        with torch.inference_mode():
            made = self.model.generate(
                self._ids(ids),
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
    folder: Path,
    name: str,
    revision: str | None,
    kind: Kind | None = None,
    placement: Placement = ANYWHERE,
) -> HuggingFaceModel:
    """A local folder through transformers; nothing is fetched and no remote code is run.

    Raises:
        ModelError: an architecture that cannot be recorded, or a file that is missing or
            damaged; it does not fit into memory, or there is no such device.
        UsageError: a kind of attention that the model does not have.
    """
    sizes = folder_sizes(folder, kind)
    card = read_card(folder, name, sizes.heads_per_layer)
    tokenizer = load_tokenizer(folder, sizes, card.bos)
    model = _load_weights(folder, placement)
    found = _attention(model, sizes)
    identity = ModelIdentity(
        name=name,
        architecture=sizes.architecture,
        heads_per_layer=found.heads_per_layer,
        parameters=model.num_parameters(),
        engine="transformers",
        dtype=str(model.dtype).removeprefix("torch."),
        revision=revision,
    )
    return HuggingFaceModel(model, identity, card, tokenizer, found.causal, sizes.kind)


def _attention(model: Any, sizes: ModelSizes) -> Attention:
    """What attention it has, as is seen: configurations leave it open, or say it wrong."""
    if "input_ids" not in inspect.signature(model.forward).parameters:
        raise reads_no_text(model.config.model_type)
    padding = model.config.get_text_config().pad_token_id
    some = [id_ for id_ in range(min(5, sizes.vocab_size)) if id_ != padding][:4]
    few = torch.tensor([some], device=model.device)
    inputs = {"input_ids": few} | ({} if sizes.kind == "self" else {"decoder_input_ids": few})
    return attention_of(model, inputs, len(sizes.heads_per_layer), sizes.kind)


def _load_weights(folder: Path, placement: Placement) -> Any:
    """The model with every weight of the folder checked."""
    from transformers.utils import logging

    check_weights(folder, placement)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model_class = _model_class(folder)
        model, report = model_class.from_pretrained(
            folder,
            dtype=placement.torch_dtype(),
            # None is transformers' own choice; modules that keep their attention to themselves
            # return it only where it is computed eagerly
            attn_implementation=None if model_class._can_set_attn_implementation() else "eager",
            use_safetensors=not (folder / PICKLED).is_file() or None,
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
    return model.to(placement.torch_device()).eval().requires_grad_(False)


def _model_class(folder: Path) -> Any:
    """The class that config.json names; where it names none that fits, the bare model.

    GPT-2's output is tied to its embedding, so its language model is always whole.
    """
    import transformers

    config = transformers_config(folder)
    names = [*(config.architectures or ())][:1]
    if config.model_type == "gpt2" and names in ([], ["GPT2Model"]):
        names = ["GPT2LMHeadModel"]
    for name in names:
        named = getattr(transformers, str(name), None)
        if getattr(named, "config_class", None) is type(config):
            return named
    return transformers.AutoModel._model_mapping[type(config)]
