"""A model through transformers, of any architecture, as an engine: a class for what it can do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnviz.errors import ModelError, UsageError, option
from attnviz.models.engine import head_trace, rows_at_a_time
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.huggingface.attention import foreign, forward
from attnviz.models.huggingface.capture import (
    generate,
    log_probabilities,
    predict,
    reduce_windows,
    run_and_capture,
    value_norms,
    vectors,
)
from attnviz.models.huggingface.dissecting import dissected, dissected_as
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.models.huggingface.intervening import intervene_transformers
from attnviz.models.loaded import LoadedModel, TakeRows
from attnviz.models.weights import weights_in
from attnviz.records.capture import NOTHING, Capture, Consumer, FloatArray, Wanted
from attnviz.records.heads import Head
from attnviz.records.predict import Intervention, LogitConsumer, RunConsumer, SourceRun
from attnviz.records.tokens import GoOn, Sampling, Token
from attnviz.records.trace import HeadTrace


@dataclass(frozen=True, kw_only=True)
class HuggingFaceModel(LoadedModel):
    """A transformers model with its tokenizer; `model` may carry an output layer."""

    model: Any

    @property
    def beams(self) -> int:
        beams = getattr(getattr(self.model, "generation_config", None), "num_beams", None)
        return beams if isinstance(beams, int) else 1

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        config = self.model.config.get_text_config()
        heads, n = max(self.identity.heads_per_layer), max(n_queries, n_keys)
        widths = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
        inner = max(widths) if isinstance(widths, list | tuple) else widths
        vectors = n * (12 * config.hidden_size + 3 * inner)  # of the layer at work
        rows = 4 * rows_at_a_time(n_keys, heads) * heads * n_keys
        # its own matrices where it computes eagerly, or may, else its mask at most
        eager = config._attn_implementation == "eager" or foreign(self.model)
        own = 3 * heads * n_queries * n_keys if eager else n_queries * n_keys // 4
        return int(4 * (vectors + rows + own))

    def weights(self) -> tuple[dict[str, Tensor], str]:
        return weights_in(self.model)

    def versions(self) -> Mapping[str, str]:
        import transformers

        return {**super().versions(), "transformers": transformers.__version__}

    def run(
        self, ids: Sequence[int], wanted: Wanted, consume: Consumer, target: Sequence[int] = ()
    ) -> None:
        run_and_capture(self.model, self.inputs(ids, target), wanted, consume, self.kind)

    def output(
        self,
        ids: Sequence[int],
        target: Sequence[int] = (),
        wanted: Wanted = NOTHING,
        consume: Consumer | None = None,
        errors: dict[int, float] | None = None,
    ) -> Tensor:
        """What leaves the body (1, n, d), with the wanted heads captured on the way.

        A model that has no body of its own (T5) gives its logits. `errors`: as in
        `run_and_capture`.
        """
        inputs = self.inputs(ids, target)
        if consume is None:
            output = forward(self.model.base_model, **inputs)
        else:
            output = run_and_capture(
                self.model, inputs, wanted, consume, self.kind, whole=True, errors=errors
            )
        hidden: Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
        return hidden

    def inputs(self, ids: Sequence[int], target: Sequence[int]) -> dict[str, Any]:
        """The arguments of its forward pass."""
        return {"input_ids": self._ids(ids), "use_cache": False}

    def _ids(self, ids: Sequence[int]) -> Tensor:
        """(1, n), on the model's device."""
        return torch.tensor([list(ids)], device=self.model.device)


class OneStack(HuggingFaceModel):
    """A model whose recorded attention stands in one stack of layers, with one residual stream."""

    @property
    def stack(self) -> Any:
        """The transformers model that holds these layers."""
        return self.model

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray:
        with torch.inference_mode():
            return vectors(self.stack, self._ids(ids), position)

    def freeze(self, ids: Sequence[int]) -> FrozenRun:
        return freeze_transformers(self.stack, self._ids(ids), self.identity.heads_per_layer)

    def trace(
        self, blank: Capture, ids: Sequence[int], head: Head, query: int, target: Sequence[int] = ()
    ) -> HeadTrace:
        return head_trace(dissected(self.stack, ids, head, query), blank, self.tokenizer)


class OneSequence(OneStack):
    """A model that attends to the one text that it reads."""

    def reduce(self, ids: Tensor, wanted: Wanted, take: TakeRows) -> None:
        if self.model._can_set_attn_implementation():
            inputs = {"input_ids": ids.to(self.model.device), "use_cache": False}
            reduce_windows(self.model, inputs, wanted, take)
        else:
            super().reduce(ids, wanted, take)

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        with torch.inference_mode():
            return value_norms(self.model, self._ids(ids), self.identity.heads_per_layer)


class CausalLM(OneSequence):
    """A causal model with an output layer: it predicts the next token."""

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        predict(self.model, self._ids(ids), positions, consume, lens=lens)

    def intervene(
        self,
        ids: Sequence[int],
        interventions: Sequence[Intervention],
        consume: RunConsumer,
        *,
        whole: bool,
        source: SourceRun | None = None,
    ) -> None:
        with torch.inference_mode():
            intervene_transformers(
                self.model,
                self._ids(ids),
                self.identity.heads_per_layer,
                interventions,
                consume,
                whole=whole,
                source=source,
            )

    def generate(
        self, ids: Sequence[int], sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        inputs, ends = {"inputs": self._ids(ids)}, ends_of(self.model)
        generate(self.model, inputs, sampling, ends, wanted, consume, go_on, self.kind)

    def log_probabilities(self, ids: Sequence[int], answer: Sequence[int]) -> FloatArray:
        inputs = {"input_ids": self._ids([*ids, *answer[:-1]]), "use_cache": False}
        return log_probabilities(self.model, inputs, self._ids(answer)[0])


class MaskedLM(OneSequence):
    """A model that reads both sides and has an output layer: it fills masks."""

    def fill(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        predict(self.model, self._ids(ids), positions, consume, lens=lens)


class EncoderDecoder(HuggingFaceModel):
    """A model that reads one text and writes another."""

    def inputs(self, ids: Sequence[int], target: Sequence[int]) -> dict[str, Any]:
        read = self._ids([self._start(), *target[:-1]])
        return {**super().inputs(ids, target), "decoder_input_ids": read}

    def write(self, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
        self._check_output()
        with torch.inference_mode():
            written = forward(
                self.model,
                through=self.model.generate,
                inputs=self._ids(ids),
                decoder_start_token_id=self._start(),
                max_new_tokens=min(LONGEST, self.tokenizer.context - 1),
                do_sample=False,
                num_beams=1,
            )
        return self.tokenizer.written(written[0, 1:].tolist())

    def _check_output(self) -> None:
        if not hasattr(self.model, "generate"):
            name = self.identity.name
            raise UsageError(f"{name} has no output layer", f"give a {option('target')}")

    def read_target(self, text: str) -> tuple[Token, ...]:
        return self.tokenizer.encode(text, bos=False, special=False)

    def _start(self) -> int:
        """The token that a decoder begins with; older configurations leave it to another."""
        sources = (self.model.config, getattr(self.model, "generation_config", None))
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        ids = (getattr(source, name, None) for name in names for source in sources)
        start = next((id_ for id_ in ids if isinstance(id_, int)), None)
        if start is None:
            raise ModelError(
                f"the configuration of {self.identity.name} names no token to begin with",
                "add decoder_start_token_id to its config.json",
            )
        return start


class PairDecoder(EncoderDecoder):
    """An encoder-decoder of which the decoder or the cross-attention is recorded."""

    def trace(
        self, blank: Capture, ids: Sequence[int], head: Head, query: int, target: Sequence[int] = ()
    ) -> HeadTrace:
        recorded = dissected_as(self.model, self.inputs(ids, target), self.kind, head, query)
        return head_trace(recorded, blank, self.tokenizer)

    def generate(
        self, ids: Sequence[int], sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        self._check_output()
        inputs = {"inputs": self._ids(ids), "decoder_start_token_id": self._start()}
        ends = ends_of(self.model)
        generate(self.model, inputs, sampling, ends, wanted, consume, go_on, self.kind)

    def log_probabilities(self, ids: Sequence[int], answer: Sequence[int]) -> FloatArray:
        return log_probabilities(self.model, self.inputs(ids, answer), self._ids(answer)[0])


class PairEncoder(EncoderDecoder, OneStack):
    """An encoder-decoder of which the encoder is recorded."""

    @property
    def stack(self) -> Any:
        return self.model.get_encoder()


def ends_of(model: Any) -> frozenset[int]:
    """The ids that end what a transformers model writes."""
    ends = getattr(model.generation_config, "eos_token_id", None)
    return frozenset([ends] if isinstance(ends, int) else ends or ())


LONGEST = 128
"""The most tokens of a target that a model writes by itself."""
