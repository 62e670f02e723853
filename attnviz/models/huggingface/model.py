"""A model through transformers, of any architecture, as an engine: a class for what it can do.

The model itself turns the output of its last layer into logits (through a norm, a soft cap, a
factor). For the logit lens, the output of an earlier layer replaces that of the last one in a
second run. What is written is what its own `generate` writes: it is given nothing but the sampling,
and a criterion that is asked after every token whether to go on.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.errors import ModelError, UsageError, option
from attnviz.models.attention import with_added
from attnviz.models.contributing import Writing
from attnviz.models.engine import LOGIT_ROWS, Handover, RecordedHead, numbers, rows_at_a_time, sent
from attnviz.models.frozen.last import LastRead
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.huggingface.attention import (
    corrected,
    foreign,
    forward,
    gated,
    hooked,
    last_logits,
    reads_images,
    watching,
)
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.capture import ProvenRows, followed, reduce_windows, run_and_capture
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.models.huggingface.head_outputs import Writings, passed
from attnviz.models.huggingface.head_parts import dissected, output_vectors
from attnviz.models.huggingface.image_prompts import see
from attnviz.models.huggingface.interventions import SitePlace, changed_runs, passing, vectors_at
from attnviz.models.huggingface.last import last_read
from attnviz.models.huggingface.layers import (
    Layers,
    check_outputs,
    check_recordable,
    first_of,
    layers_of,
    matrix_of,
    parts_of,
    unknown,
)
from attnviz.models.huggingface.paths import patched_paths, slopes
from attnviz.models.huggingface.vision import beside_of, telling
from attnviz.models.loaded import Ability, LoadedModel, ReadInput, RowReduction
from attnviz.models.weights import weights_in
from attnviz.records.capture import NOTHING, Consumer, FloatArray, Wanted
from attnviz.records.heads import Head
from attnviz.records.interventions import Interventions, RunConsumer, Site
from attnviz.records.paths import FirstOrder, PathConsumer, Paths, SlopeOf
from attnviz.records.places import RawImage, ReadAs
from attnviz.records.predict import LogitConsumer, LogitRows
from attnviz.records.rests import FindRests
from attnviz.records.tokens import GoOn, Ids, Sampling, Token

LONGEST = 128
"""The most tokens of a target that a model writes by itself."""


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

    @torch.inference_mode()
    def output_vectors(self) -> Tensor:
        return output_vectors(self.model)

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        run_and_capture(self.model, self.inputs(ids, target), wanted, consume, self.kind)

    @torch.inference_mode()
    def output(
        self,
        ids: Ids,
        target: Ids = (),
        wanted: Wanted = NOTHING,
        consume: Consumer | None = None,
        errors: dict[int, float] | None = None,
    ) -> Tensor:
        """The output of the body (1, n, d), with the wanted heads captured on the way.

        A model without a body (T5) gives its logits. `errors`: as in `run_and_capture`.
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

    @property
    def reads_images(self) -> bool:
        return reads_images(self.model)

    def of_pair(self, tokens: Sequence[Token]) -> LoadedModel:
        types = self._ids([token.type for token in tokens])
        ids = self._ids([token.id for token in tokens])
        return replace(self, model=telling(self.model, ids, types)) if types.any() else self

    def see(self, text: str, pictures: Sequence[RawImage], how: ReadAs) -> ReadInput:
        self.check_sees()
        return see(self, text, pictures, how)

    def inputs(self, ids: Ids, target: Ids = ()) -> dict[str, Any]:
        """The arguments of its forward pass."""
        return {"input_ids": self._ids(ids), "use_cache": False}

    def _ids(self, ids: Ids) -> Tensor:
        """(1, n), on the model's device."""
        return torch.tensor([list(ids)], device=self.model.device)

    def _write(
        self,
        inputs: Mapping[str, Any],
        sampling: Sampling,
        wanted: Wanted,
        consume: Consumer,
        go_on: GoOn,
    ) -> None:
        """Write tokens, as `LoadedModel.generate`; `inputs`: those of the model's `generate`."""
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        ends = [ends] if isinstance(ends, int) else ends or ()
        handover, step, read = Handover(wanted, consume), 0, inputs["inputs"].size(1)

        def ended(ids: Tensor, _scores: Any, **_more: Any) -> Tensor:
            nonlocal step
            id_ = int(ids[0, -1])
            if id_ in ends:
                return torch.tensor([True], device=ids.device)
            keys = {"self": read + step, "decoder": 1 + step}.get(self.kind, read)
            for layer, row in rows.items():
                if row.size(2) < keys:  # a window's cache has forgotten the first ones
                    row = nn.functional.pad(row, (keys - row.size(2), 0))
                handover.take(layer, torch.tensor([step]), row)
            step += 1
            return torch.tensor([not go_on(id_)], device=ids.device)

        greedy = sampling.greedy
        with torch.inference_mode(), torch.random.fork_rng(), self._last_rows(wanted) as rows:
            torch.manual_seed(sampling.seed)
            forward(
                self.model,
                through=self.model.generate,
                **inputs,
                do_sample=not greedy,
                temperature=None if greedy else sampling.temperature,
                top_p=None if greedy else sampling.top_p,
                top_k=None if greedy else 0,
                num_beams=1,
                max_new_tokens=sampling.most,
                stopping_criteria=[ended],
            )

    @contextmanager
    def _last_rows(self, wanted: Wanted) -> Iterator[dict[int, Tensor]]:
        """The last row of every wanted layer's attention in the forward pass at work."""
        layers, proven, rows = Layers(self.model, self.kind), ProvenRows(), dict[int, Tensor]()

        def begin(*_: Any) -> None:
            layers.begin()
            rows.clear()

        def on_call(call: AttentionCall) -> None:
            layer = layers.at_work(call.module)
            if layer is not None and layer in wanted.heads:
                last = torch.tensor([call.q.size(1) - 1])
                rows[layer] = proven.of(call, layer, wanted.heads[layer], last)(last)[0].clone()

        def on_output(module: nn.Module, pattern: Tensor) -> None:
            layer = layers.at_work(module)
            if layer is not None and layer in wanted.heads:
                rows[layer] = pattern[:, -1:].clone()

        def written(layer: int, call: AttentionCall, writing: Writing) -> None:
            last = torch.tensor([call.q.size(1) - 1])
            weights = proven.of(call, layer, wanted.heads[layer], last)(last)[0]
            rows[layer] = writing.contributions(weights, last)

        beginning = self.model.register_forward_pre_hook(begin)
        if wanted.contributions:
            writings = Writings(self.model, wanted.heads, self.kind, written)
            with hooked([beginning]), writings.watched():
                yield rows
            return
        with hooked([beginning]), watching(self.model, on_call, on_output):
            yield rows

    @torch.inference_mode()
    def _answered(self, rows: Sequence[Mapping[str, Any]], answer: Ids) -> Tensor:
        """What `answered` gives, of arguments for each prompt, which run as one batch."""
        inputs: dict[str, Any] = {
            name: torch.cat([each[name] for each in rows]) if isinstance(value, Tensor) else value
            for name, value in rows[0].items()
        }
        return last_logits(self.model, len(answer), **inputs)


class SelfAttending(HuggingFaceModel):
    """A model whose recorded attention is that of one sequence to itself."""

    def check_contributions(self) -> None:
        check_recordable(self.model)

    @property
    def gated(self) -> bool:
        return gated(self.model)

    @torch.inference_mode()
    def gates(self, ids: Ids) -> FloatArray | None:
        if not self.gated:
            return None
        with suppress(ModelError):  # its patterns can be shown all the same
            return numbers(passed(self.model, self.inputs(ids), self.identity.heads_per_layer))
        return None

    @torch.inference_mode()
    def value_norms(self, ids: Ids) -> FloatArray:
        model, heads_per_layer = self.model, self.identity.heads_per_layer
        check_recordable(model)
        parts = parts_of(model, [layer for layer, heads in enumerate(heads_per_layer) if heads])
        like = torch.empty((), dtype=model.dtype, device=model.device)
        w_o = {n: matrix_of(part.output, like.expand(part.width)) for n, part in parts.items()}
        norms = torch.full((len(heads_per_layer), max(heads_per_layer), len(ids)), torch.nan)
        layers = Layers(model, "self")
        under_way = dict[nn.Module, tuple[int, Tensor]]()  # projections whose input is known

        def measure(call: AttentionCall, attended: Tensor) -> Tensor:
            layer = layers.at_work(call.module)
            if layer is not None and layer in parts:
                heads = call.q.size(0)
                v = call.v.repeat_interleave(heads // call.v.size(0), dim=0).float()  # (h, n, d_v)
                by_head = w_o[layer][0].float().reshape(heads, v.size(-1), -1)
                norms[layer, :heads] = (v @ by_head).norm(dim=-1).cpu()
                under_way[parts[layer].output] = layer, attended
            return attended  # (1, n, h, d_v)

        def see(projection: nn.Module, _args: Any, output: Tensor) -> None:
            layer, attended = under_way.pop(projection)
            check_outputs(parts[layer].attention, attended.flatten(2)[0], output, w_o[layer])

        projections = {part.output for part in parts.values()}
        hooks = (projection.register_forward_hook(see) for projection in projections)
        with followed(model), corrected(model, measure), hooked(hooks):
            forward(model.base_model, **self.inputs(ids))
        return np.asarray(norms.numpy())


class OneStack(HuggingFaceModel):
    """A model whose recorded attention is in one stack of layers, with one residual stream."""

    @property
    def stack(self) -> Any:
        """The transformers model that holds these layers."""
        return self.model

    @torch.inference_mode()
    def vectors(self, ids: Ids, position: int) -> FloatArray:
        layers, first = layers_of(self.stack), list[Tensor]()
        with passing(SitePlace(layers[0], incoming=True), first.append):
            after = self._streams(self._ids(ids), layers)
        return numbers(torch.stack([stream[0, position].float() for stream in (*first, *after)]))

    def _streams(self, ids: Tensor, layers: Sequence[nn.Module]) -> list[Tensor]:
        """The stream after each of the layers, (1, n, d)."""
        streams: list[Tensor] = []

        def keep(_module: nn.Module, _args: Any, output: Any) -> None:
            streams.append(first_of(output))

        with hooked(layer.register_forward_hook(keep) for layer in layers):
            getattr(self.stack, "base_model", self.stack)(input_ids=ids, use_cache=False)
        return streams

    def freeze(self, ids: Ids) -> FrozenRun:
        return freeze_transformers(self.stack, self._ids(ids), self.identity.heads_per_layer)

    def record(
        self, ids: Ids, heads: Sequence[Head], query: int, target: Ids = ()
    ) -> Sequence[RecordedHead]:
        inputs = HuggingFaceModel.inputs(self, ids)  # the stack's own, not those of a whole model
        return dissected(self.stack, inputs, "self", heads, query)


class OneSequence(SelfAttending, OneStack):
    """A model that attends to the one text that it reads."""

    @property
    def stream_width(self) -> int:
        return int(self.model.config.get_text_config().hidden_size)

    def steered(self, vectors: Mapping[int, FloatArray], about: str) -> LoadedModel:
        layers, view = layers_of(self.model), self.model
        if len(layers) != len(self.identity.heads_per_layer):
            raise unknown(f"the layers of {type(view).__name__} share their modules")
        names = {module: name for name, module in view.named_modules()}
        for layer, vector in vectors.items():
            view = with_added(view, names[layers[layer]], torch.from_numpy(vector))
        return replace(self, model=view, identity=self.identity.with_added(about))

    @cached_property
    def _plain(self) -> dict[Any, bool]:
        return {}

    def reduce(self, ids: Tensor, wanted: Wanted, reduction: RowReduction) -> None:
        if self.model._can_set_attn_implementation():
            ids = sent(ids, self.model.device)
            reduce_windows(self.model, ids, wanted, reduction, self._plain)
        else:
            super().reduce(ids, wanted, reduction)

    @torch.inference_mode()
    def _hand_over_logits(
        self, ids: Ids, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        """Hand over logits as `predict` and `fill`: the lens's from layer 0, then the model's."""
        inputs, wanted = self.inputs(ids), torch.tensor(list(positions))

        def hand_over(layer: int | None) -> None:
            logits = forward(self.model, **inputs).logits[0]
            for part in torch.split(wanted, LOGIT_ROWS):
                consume(LogitRows(layer, part.numpy(), numbers(logits[part])))

        if lens:
            *earlier, last = layers_of(self.model)
            for layer, stream in enumerate(self._streams(inputs["input_ids"], earlier)):

                def instead(_: Tensor, stream: Tensor = stream) -> Tensor:
                    return stream

                with passing(SitePlace(last, incoming=False), instead):
                    hand_over(layer)
        hand_over(None)


class CausalLM(OneSequence):
    """A causal model with an output layer: it predicts the next token."""

    predict = OneSequence._hand_over_logits

    def last(self, ids: Ids, rests: FindRests | None = None) -> LastRead:
        with followed(self.model):
            return last_read(self.model, self.inputs(ids), self.identity.heads_per_layer, rests)

    @torch.inference_mode()
    def intervene(self, ids: Ids, interventions: Interventions, consume: RunConsumer) -> None:
        heads = self.identity.heads_per_layer
        for run in changed_runs(self.model, self._ids(ids), heads, interventions):
            consume(run)

    @torch.inference_mode()
    def site_vectors(self, ids: Ids, sites: Collection[Site]) -> dict[Site, FloatArray]:
        return vectors_at(self.model, self._ids(ids), self.identity.heads_per_layer, sites)

    @torch.inference_mode()
    def paths(self, ids: Ids, paths: Paths, consume: PathConsumer) -> None:
        heads = self.identity.heads_per_layer
        for sender, receiver, logits in patched_paths(self.model, self._ids(ids), heads, paths):
            consume(sender, receiver, numbers(logits))

    def first_order(self, ids: Ids, slope_of: SlopeOf) -> FirstOrder:
        return slopes(self.model, ids, self.identity.heads_per_layer, slope_of)

    def generate(
        self, ids: Ids, sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        read = self._ids(ids)
        given = {"inputs": read, **beside_of(self.model, read)}
        self._write(given, sampling, wanted, consume, go_on)

    def answered(self, prompts: Sequence[Ids], answer: Ids) -> Tensor:
        rows = [self.inputs([*ids, *answer[:-1]]) for ids in prompts]
        return self._answered(rows, answer)


class PrefixLM(OneSequence):
    """A model that reads what it is given from both sides, and writes on (PaliGemma)."""

    generate = CausalLM.generate

    def _refusal(self, ability: Ability | Literal["contributions"]) -> UsageError:
        if ability not in ("predict", "fill"):
            return super()._refusal(ability)
        return UsageError(
            f"{self.identity.name} reads a prompt from both sides, and predicts only what is "
            "written behind all of it",
            "let it write, or use a causal model",
        )

    def answered(self, prompts: Sequence[Ids], answer: Ids) -> Tensor:
        read, written = len(prompts[0]), len(answer) - 1
        written_only = self._ids([0] * read + [1] * written)  # the prefix is without the answer
        rows = [
            {**self.inputs([*ids, *answer[:-1]]), "token_type_ids": written_only} for ids in prompts
        ]
        return self._answered(rows, answer)


class MaskedLM(OneSequence):
    """A model that reads both sides and has an output layer: it fills masks."""

    fill = OneSequence._hand_over_logits


class VisionSide(HuggingFaceModel):
    """The attention of a vision-language model's image side, whatever the text is."""

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        given = self.model.given_images
        inputs = self.inputs(given.ids)
        run_and_capture(self.model, inputs, wanted, consume, self.kind, row=given.sheet)


class EncoderDecoder(HuggingFaceModel):
    """A model that reads one text and writes another."""

    def inputs(self, ids: Ids, target: Ids = ()) -> dict[str, Any]:
        read = self._ids([self._start(), *target[:-1]])
        return {**super().inputs(ids), "decoder_input_ids": read}

    def write(self, ids: Ids) -> tuple[str, tuple[Token, ...]]:
        self._check_output()
        with torch.inference_mode():
            written = forward(
                self.model,
                through=self.model.generate,
                inputs=self._ids(ids),
                **beside_of(self.model, self._ids(ids)),
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

    def record(
        self, ids: Ids, heads: Sequence[Head], query: int, target: Ids = ()
    ) -> Sequence[RecordedHead]:
        return dissected(self.model, self.inputs(ids, target), self.kind, heads, query)

    def generate(
        self, ids: Ids, sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        self._check_output()
        given = {"inputs": (read := self._ids(ids)), **beside_of(self.model, read)}
        inputs = {**given, "decoder_start_token_id": self._start()}
        self._write(inputs, sampling, wanted, consume, go_on)

    def answered(self, prompts: Sequence[Ids], answer: Ids) -> Tensor:
        rows = [self.inputs(ids, answer) for ids in prompts]
        return self._answered(rows, answer)


class PairEncoder(EncoderDecoder, OneStack):
    """An encoder-decoder of which the encoder is recorded."""

    @property
    def stack(self) -> Any:
        return self.model.get_encoder()
