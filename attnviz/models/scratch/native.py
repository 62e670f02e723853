"""The from-scratch model as a loaded model: patterns recorded at its hook points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached
from attnviz.models.fingerprint import fingerprint
from attnviz.models.folder.config import folder_sizes, gpt2_config
from attnviz.models.folder.hub import read_card
from attnviz.models.frozen.sums import FrozenRun
from attnviz.models.intervening import head_trace, numbers
from attnviz.models.loaded import Rows, Take
from attnviz.models.placement import ANYWHERE, BUILTIN, Placement, check_weights
from attnviz.models.sampling import LOGIT_ROWS, Handover, log_probability, rows_at_a_time
from attnviz.models.scratch.checkpoint import generate_native, load_checkpoint, to_gpt2
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.intervening import freeze_gpt, intervene_native
from attnviz.models.scratch.tracing import gpt_record
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer
from attnviz.records.capture import (
    NOTHING,
    Capture,
    Consumer,
    FloatArray,
    Kind,
    ModelIdentity,
    Wanted,
)
from attnviz.records.heads import Head, ModelCard
from attnviz.records.interventions import Intervention, RunConsumer, SourceRun
from attnviz.records.predict import LogitConsumer, LogitRows
from attnviz.records.prompt import GoOn, Sampling
from attnviz.records.trace import HeadTrace


@dataclass(frozen=True)
class NativeModel:
    """A `gpt.GPT` with its tokenizer and card; `ends` are the tokens that end a text."""

    model: GPT
    identity: ModelIdentity
    card: ModelCard
    tokenizer: TextTokenizer
    ends: frozenset[int] = frozenset()
    causal: bool = True
    sinks: bool = False
    kind: Kind = "self"
    beams: int = 1

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        sizes = self.model.config
        vectors = n_keys * (12 * sizes.n_embd + 2 * sizes.d_mlp)  # of the layer at work
        rows = 4 * rows_at_a_time(n_keys, sizes.n_head) * sizes.n_head * n_keys
        return 4 * (vectors + rows)

    def weights(self) -> tuple[dict[str, Tensor], str]:
        """What its fingerprint is taken of: as in transformers, so that both have the same."""
        return to_gpt2(self.model.state_dict()), ""

    def versions(self) -> Mapping[str, str]:
        return {"torch": str(torch.__version__)}

    def run(
        self,
        ids: Sequence[int],
        wanted: Wanted,
        consume: Consumer,
        target: Sequence[int] = (),
    ) -> None:
        with torch.inference_mode():
            self._hidden(ids, wanted, consume, wanted.last_layer + 1)

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
        return self._hidden(ids, wanted, consume, None)

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        wanted = torch.tensor(list(positions))
        streams: dict[int | None, Tensor] = {}

        def keeper(layer: int) -> Hook:
            def keep(stream: Tensor) -> None:
                streams[layer] = stream[0, wanted]

            return keep

        before_last = range(self.model.config.n_layer - 1) if lens else ()
        hooks = {f"h.{layer}.resid_post": keeper(layer) for layer in before_last}
        rows = rows_at_a_time(len(ids), self.model.config.n_head)
        with torch.inference_mode(), attached(self.model, hooks):
            streams[None] = self.model.hidden(self._ids(ids), rows=rows)[0, wanted]
            for layer, stream in streams.items():
                for part in torch.split(torch.arange(len(wanted)), LOGIT_ROWS):
                    logits = self.model.logits(self.model.ln_f(stream[part]))  # (rows, V)
                    consume(LogitRows(layer, wanted[part].numpy(), logits.float().cpu().numpy()))

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray:
        seen: list[Tensor] = []

        def keep(stream: Tensor) -> None:
            seen.append(stream[0, position])

        last = ("h.0.resid_pre", *(f"h.{n}.resid_post" for n in range(len(self.model.h))))
        rows = rows_at_a_time(len(ids), self.model.config.n_head)
        with torch.inference_mode(), attached(self.model, dict.fromkeys(last, keep)):
            self.model.hidden(self._ids(ids), rows=rows)
        return numbers(torch.stack(seen))

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        norms: list[Tensor] = []

        def measure(w_o: Tensor) -> Hook:
            def keep(v: Tensor) -> None:  # (1, h, n, d_v)
                norms.append((v[0] @ w_o.view(v.size(1), v.size(3), -1)).norm(dim=-1))

            return keep

        blocks: Iterable[tuple[int, Any]] = enumerate(self.model.h)
        hooks = {f"h.{i}.attn.v": measure(b.attn.w_o.weight) for i, b in blocks}
        rows = rows_at_a_time(len(ids), self.model.config.n_head)
        with torch.inference_mode(), attached(self.model, hooks):
            self.model.hidden(self._ids(ids), rows=rows)
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
        given = self.model, self._ids(ids), interventions, consume
        with torch.inference_mode():
            intervene_native(*given, whole=whole, source=source)

    def generate(
        self,
        ids: Sequence[int],
        sampling: Sampling,
        wanted: Wanted,
        consume: Consumer,
        go_on: GoOn,
    ) -> None:
        given = sampling, self.ends, wanted, consume, go_on
        generate_native(self.model, self._ids(ids), *given)

    def log_probabilities(self, ids: Sequence[int], answer: Sequence[int]) -> FloatArray:
        read = self._ids([*ids, *answer[:-1]])
        rows = rows_at_a_time(read.size(1), self.model.config.n_head)
        with torch.inference_mode():
            stream = self.model.hidden(read, rows=rows)[0, len(ids) - 1 :]  # (m, d)
            logits = self.model.logits(self.model.ln_f(stream))  # (m, V)
            return numbers(log_probability(logits, self._ids(answer)[0]))

    def _hidden(
        self, ids: Sequence[int], wanted: Wanted, consume: Consumer, layers: int | None
    ) -> Tensor:
        handover = Handover(wanted, consume)
        point = "scores" if wanted.scores else "pattern"
        hooks = {f"h.{layer}.attn.{point}": handover.hook(layer) for layer in wanted.heads}
        rows = rows_at_a_time(len(ids), self.model.config.n_head)
        with attached(self.model, hooks):
            return self.model.hidden(self._ids(ids), n_layer=layers, rows=rows)

    def reduce(self, ids: Tensor, wanted: Wanted, take: Take) -> None:
        device, first = self.model.wte.weight.device, dict.fromkeys(wanted.heads, 0)

        def hook(layer: int) -> Hook:
            heads = list(wanted.heads[layer])
            every = len(heads) == self.model.config.n_head

            def give(pattern: Tensor) -> None:  # (B, h, rows, n)
                own = pattern if every else pattern[:, heads]
                take(Rows(layer, slice(0, len(ids)), first[layer], own))
                first[layer] += pattern.size(2)

            return give

        hooks = {f"h.{layer}.attn.pattern": hook(layer) for layer in wanted.heads}
        rows = rows_at_a_time(ids.size(1), self.model.config.n_head * len(ids))
        with torch.inference_mode(), attached(self.model, hooks):
            self.model.hidden(ids.to(device), n_layer=wanted.last_layer + 1, rows=rows)

    def _ids(self, ids: Sequence[int]) -> Tensor:
        """(1, n), on the model's device."""
        return torch.tensor([list(ids)], device=self.model.wte.weight.device)

    def freeze(self, ids: Sequence[int]) -> FrozenRun:
        return freeze_gpt(self.model, self._ids(ids))

    def trace(
        self,
        blank: Capture,
        ids: Sequence[int],
        head: Head,
        query: int,
        target: Sequence[int] = (),
    ) -> HeadTrace:
        recorded = gpt_record(self.model, self._ids(ids)[0], head, query)
        return head_trace(recorded, blank, self.tokenizer)


def load_native(
    folder: Path, name: str, revision: str | None = None, placement: Placement = ANYWHERE
) -> NativeModel:
    """Load a GPT-2 folder into the from-scratch model.

    Raises:
        ModelError: a file of the folder is missing or damaged, or there is no such device.
    """
    sizes = folder_sizes(folder)
    card = read_card(folder, name, sizes.heads_per_layer)
    tokenizer = load_tokenizer(folder, sizes, card.bos)
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
    return NativeModel(model, identity, card, tokenizer, gpt2_config(folder).ends)
