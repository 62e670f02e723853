"""The from-scratch GPT as an engine: patterns recorded at its hook points."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached, kept
from attnviz.models.engine import (
    LOGIT_ROWS,
    Handover,
    chosen,
    head_trace,
    last_row,
    log_probability,
    numbers,
    rows_at_a_time,
)
from attnviz.models.folder.config import gpt2_config
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.loaded import HeadRows, LoadedModel, TakeRows
from attnviz.models.placement import ANYWHERE, BUILTIN, Placement, check_weights
from attnviz.models.scratch.checkpoint import load_checkpoint, to_gpt2
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.runs import freeze_gpt, gpt_record, intervene_native
from attnviz.models.tokenizer import read_folder
from attnviz.models.weights import fingerprint
from attnviz.records.capture import NOTHING, Capture, Consumer, FloatArray, ModelIdentity, Wanted
from attnviz.records.heads import Head
from attnviz.records.predict import Intervention, LogitConsumer, LogitRows, RunConsumer, SourceRun
from attnviz.records.tokens import GoOn, Sampling
from attnviz.records.trace import HeadTrace


@dataclass(frozen=True, kw_only=True)
class NativeModel(LoadedModel):
    """A `gpt.GPT` with its tokenizer and card; `ends` are the tokens that end a text."""

    model: GPT
    ends: frozenset[int] = frozenset()
    causal: bool = True

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        sizes = self.model.config
        vectors = n_keys * (12 * sizes.n_embd + 2 * sizes.d_mlp)  # of the layer at work
        rows = 4 * rows_at_a_time(n_keys, sizes.n_head) * sizes.n_head * n_keys
        return 4 * (vectors + rows)

    def weights(self) -> tuple[dict[str, Tensor], str]:
        """As in transformers, so that both have the same fingerprint."""
        return to_gpt2(self.model.state_dict()), ""

    def run(
        self, ids: Sequence[int], wanted: Wanted, consume: Consumer, target: Sequence[int] = ()
    ) -> None:
        with torch.inference_mode():
            self._captured(ids, wanted, consume, wanted.last_layer + 1)

    @torch.inference_mode()
    def output(
        self,
        ids: Sequence[int],
        target: Sequence[int] = (),
        wanted: Wanted = NOTHING,
        consume: Consumer | None = None,
    ) -> Tensor:
        """The output of the last layer (1, n, d), with the wanted heads captured on the way."""
        if consume is None:
            return self.model.hidden(self._ids(ids))
        return self._captured(ids, wanted, consume, None)

    def _captured(
        self, ids: Sequence[int], wanted: Wanted, consume: Consumer, layers: int | None
    ) -> Tensor:
        handover = Handover(wanted, consume)
        point = "scores" if wanted.scores else "pattern"
        hooks = {f"h.{layer}.attn.{point}": handover.hook(layer) for layer in wanted.heads}
        with attached(self.model, hooks):
            return self._hidden(self._ids(ids), layers)

    def _hidden(self, ids: Tensor, layers: int | None = None) -> Tensor:
        """The stream (B, n, d) after these layers, a few rows of attention at a time."""
        rows = rows_at_a_time(ids.size(1), self.model.config.n_head * len(ids))
        return self.model.hidden(ids, n_layer=layers, rows=rows)

    def _ids(self, ids: Sequence[int]) -> Tensor:
        """(1, n), on the model's device."""
        return torch.tensor([list(ids)], device=self.model.wte.weight.device)

    def reduce(self, ids: Tensor, wanted: Wanted, take: TakeRows) -> None:
        first = dict.fromkeys(wanted.heads, 0)

        def hook(layer: int) -> Hook:
            heads = list(wanted.heads[layer])
            every = len(heads) == self.model.config.n_head

            def give(pattern: Tensor) -> None:  # (B, h, rows, n)
                own = pattern if every else pattern[:, heads]
                take(HeadRows(layer, slice(0, len(ids)), first[layer], own))
                first[layer] += pattern.size(2)

            return give

        hooks = {f"h.{layer}.attn.pattern": hook(layer) for layer in wanted.heads}
        with torch.inference_mode(), attached(self.model, hooks):
            self._hidden(ids.to(self.model.wte.weight.device), wanted.last_layer + 1)

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        wanted = torch.tensor(list(positions))
        before_last = range(self.model.config.n_layer - 1) if lens else ()
        names = {f"h.{layer}.resid_post": layer for layer in before_last}
        with torch.inference_mode(), kept(self.model, names, lambda x: x[0, wanted]) as earlier:
            last = self._hidden(self._ids(ids))[0, wanted]
            streams = {names[name]: stream for name, stream in earlier.items()}
            for layer, stream in [*streams.items(), (None, last)]:
                for part in torch.split(torch.arange(len(wanted)), LOGIT_ROWS):
                    logits = self.model.logits(self.model.ln_f(stream[part]))  # (rows, V)
                    consume(LogitRows(layer, wanted[part].numpy(), logits.float().cpu().numpy()))

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray:
        names = ("h.0.resid_pre", *(f"h.{n}.resid_post" for n in range(len(self.model.h))))
        with torch.inference_mode(), kept(self.model, names, lambda x: x[0, position]) as streams:
            self._hidden(self._ids(ids))
        return numbers(torch.stack([streams[name] for name in names]))

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        norms: list[Tensor] = []

        def measure(w_o: Tensor) -> Hook:
            def keep(v: Tensor) -> None:  # (1, h, n, d_v)
                norms.append((v[0] @ w_o.view(v.size(1), v.size(3), -1)).norm(dim=-1))

            return keep

        blocks: Iterable[tuple[int, Any]] = enumerate(self.model.h)
        hooks = {f"h.{i}.attn.v": measure(b.attn.w_o.weight) for i, b in blocks}
        with torch.inference_mode(), attached(self.model, hooks):
            self._hidden(self._ids(ids))
        return numbers(torch.stack(norms))

    def intervene(
        self,
        ids: Sequence[int],
        interventions: Sequence[Intervention],
        consume: RunConsumer,
        *,
        whole: bool,
        source: SourceRun | None = None,
    ) -> None:
        run = partial(intervene_native, self.model, self._ids(ids), interventions, consume)
        with torch.inference_mode():
            run(whole=whole, source=source)

    def generate(
        self, ids: Sequence[int], sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        """Each token is read once, thanks to a cache at the hook points of keys and values."""
        read, n, handover = self._ids(ids), len(ids), Handover(wanted, consume)
        points = {f"h.{layer}.attn.pattern": layer for layer in wanted.heads}
        every = [f"h.{layer}.attn.{name}" for layer in range(len(self.model.h)) for name in "kv"]
        caches = attached(self.model, {point: _cache(n + sampling.most) for point in every})
        last_rows = kept(self.model, points, last_row)
        with torch.inference_mode(), torch.random.fork_rng(), caches, last_rows as rows:
            torch.manual_seed(sampling.seed)
            stream = self._hidden(read)  # (1, n, d)
            for step in range(sampling.most):
                id_ = chosen(self.model.logits(self.model.ln_f(stream[0, -1])), sampling)
                if id_ in self.ends:
                    return
                for point, layer in points.items():
                    handover.take(layer, torch.tensor([step]), rows[point])
                if not go_on(id_) or step + 1 == sampling.most:
                    return
                everything = torch.ones(1, n + step + 1, dtype=torch.bool, device=read.device)
                at = torch.tensor([n + step], device=read.device)
                stream = self.model.hidden(self._ids([id_]), mask=everything, positions=at)

    def log_probabilities(self, ids: Sequence[int], answer: Sequence[int]) -> FloatArray:
        with torch.inference_mode():
            stream = self._hidden(self._ids([*ids, *answer[:-1]]))[0, len(ids) - 1 :]  # (m, d)
            logits = self.model.logits(self.model.ln_f(stream))  # (m, V)
            return numbers(log_probability(logits, self._ids(answer)[0]))

    def freeze(self, ids: Sequence[int]) -> FrozenRun:
        return freeze_gpt(self.model, self._ids(ids))

    def trace(
        self, blank: Capture, ids: Sequence[int], head: Head, query: int, target: Sequence[int] = ()
    ) -> HeadTrace:
        recorded = gpt_record(self.model, self._ids(ids)[0], head, query)
        return head_trace(recorded, blank, self.tokenizer)


def _cache(most: int) -> Hook:
    """Passes on all keys, or values, that arrived so far; `most`: how many there will be."""
    so_far, filled = torch.empty(0), 0

    def grow(new: Tensor) -> Tensor:  # (1, h, n, d_k)
        nonlocal so_far, filled
        if not filled:
            so_far = new.new_empty(*new.shape[:2], most, new.size(3))
        so_far[:, :, filled : filled + new.size(2)] = new
        filled += new.size(2)
        return so_far[:, :, :filled]  # (1, h, filled, d_k)

    return grow


def load_native(
    folder: Path, name: str, revision: str | None = None, placement: Placement = ANYWHERE
) -> NativeModel:
    """Load a GPT-2 folder into the from-scratch model."""
    _, card, tokenizer = read_folder(folder, name)
    if name != BUILTIN:
        check_weights(folder, placement)
    model = load_checkpoint(folder)
    # the built-in model is too small to be worth the way to another device
    if name != BUILTIN or placement.device != "auto":
        model = model.to(placement.torch_device())
    identity = ModelIdentity(
        name=name,
        architecture="gpt2",
        heads_per_layer=model.config.heads_per_layer,
        parameters=sum(p.numel() for p in model.parameters()),
        engine="native",
        revision=revision,
        fingerprint=fingerprint(to_gpt2(model.state_dict())),
    )
    ends = gpt2_config(folder).ends
    return NativeModel(identity=identity, card=card, tokenizer=tokenizer, model=model, ends=ends)
