"""The decoders from scratch as an engine, with patterns recorded at hook points; their folders."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from attnviz.models.attention import EnoughSeen, Hook, attached, kept, with_added
from attnviz.models.contributing import HeadsWriting
from attnviz.models.engine import (
    LOGIT_ROWS,
    Handover,
    RecordedHead,
    numbers,
    rows_at_a_time,
    sent,
    write_tokens,
)
from attnviz.models.folder.config import GPTConfig, check_computable, gpt2_config
from attnviz.models.folder.files import CONFIG, TOKENIZER, WEIGHTS
from attnviz.models.folder.llama import LlamaConfig, llama_config
from attnviz.models.frozen.last import LastRead
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.loaded import HeadRows, LoadedModel, RowReduction, SomeHeadRows
from attnviz.models.placement import ANYWHERE, BUILTIN, Placement, check_weights
from attnviz.models.scratch.decoder import (
    CausalBlock,
    Decoder,
    ReadPrefix,
    read_prefix,
    without_memory,
)
from attnviz.models.scratch.gpt import GPT, from_gpt2, to_gpt2
from attnviz.models.scratch.last import read_last
from attnviz.models.scratch.llama import Llama, from_transformers
from attnviz.models.scratch.paths import paths_native, slopes_native
from attnviz.models.scratch.runs import (
    freeze_decoder,
    gpt_record,
    intervene_native,
    llama_record,
    vectors_of,
)
from attnviz.models.tokenizer import read_folder
from attnviz.models.weights import check_parameters, fill, fingerprint, read_weights
from attnviz.records.capture import NOTHING, Consumer, FloatArray, ModelIdentity, Wanted
from attnviz.records.heads import Head, grouped
from attnviz.records.interventions import Interventions, RunConsumer, Site, SourceRun
from attnviz.records.paths import FirstOrder, PathConsumer, Paths, SlopeOf
from attnviz.records.predict import LogitConsumer, LogitRows
from attnviz.records.rests import FindRests
from attnviz.records.tokens import GoOn, Ids, Sampling


@dataclass(frozen=True, kw_only=True)
class NativeModel(LoadedModel):
    """A decoder with its tokenizer and card.

    `ends`: the tokens that end a text. `prefix`: a prompt that need not be read again.
    """

    model: Decoder
    ends: frozenset[int] = frozenset()
    prefix: ReadPrefix | None = None
    causal: bool = True

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        sizes = self.model.config
        vectors = n_keys * (12 * sizes.n_embd + 2 * sizes.d_mlp)  # of the layer at work
        rows = 4 * rows_at_a_time(n_keys, sizes.n_head) * sizes.n_head * n_keys
        return 4 * (vectors + rows)

    def weights(self) -> tuple[dict[str, Tensor], str]:
        """As in transformers, so that both have the same fingerprint."""
        published = self.model.published()
        return {name: each.to(self.model.dtype) for name, each in published.items()}, ""

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        with torch.inference_mode():
            self._captured(ids, wanted, consume, wanted.last_layer + 1)

    @torch.inference_mode()
    def output(
        self, ids: Ids, target: Ids = (), wanted: Wanted = NOTHING, consume: Consumer | None = None
    ) -> Tensor:
        """The output of the last layer (1, n, d), with the wanted heads captured on the way."""
        if consume is None:
            return self.model.hidden(self._ids(ids))
        return self._captured(ids, wanted, consume, None)

    def _captured(self, ids: Ids, wanted: Wanted, consume: Consumer, layers: int | None) -> Tensor:
        handover = Handover(wanted, consume)
        point = "scores" if wanted.scores else "pattern"
        hooks = {f"h.{layer}.attn.{point}": handover.hook(layer) for layer in wanted.heads}
        if wanted.contributions:
            hooks = {}
            for layer in wanted.heads:
                written = HeadsWriting(self.model.block(layer).output[0], handover.hook(layer))
                hooks |= {f"h.{layer}.attn.{p}": getattr(written, p) for p in ("v", "pattern")}
        with attached(self.model, hooks):
            return self.model.by_rows(self._ids(ids), layers)

    def _ids(self, ids: Ids) -> Tensor:
        """(1, n), on the model's device."""
        return torch.tensor([list(ids)], device=self.model.device)

    def reduce(self, ids: Tensor, wanted: Wanted, reduction: RowReduction) -> None:
        model, windows, hooks = self._dense, slice(0, len(ids)), dict[str, Hook]()
        for layer, heads in wanted.heads.items():
            last, block = layer == wanted.last_layer, model.block(layer)
            run = _LayerRun(layer, list(heads), block, windows, reduction, last=last)
            hooks |= {f"h.{layer}.attn.{point}": getattr(run, point) for point in LAYER_POINTS}
        with torch.inference_mode(), attached(model, hooks), suppress(EnoughSeen):
            model.by_rows(sent(ids, model.device), wanted.last_layer + 1)

    @cached_property
    def _dense(self) -> Decoder:
        """The model with weights in the precision of its products, for what runs many times."""
        return self.model.dense()

    def predict(
        self, ids: Ids, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        wanted = torch.tensor(list(positions))
        before_last = range(self.model.config.n_layer - 1) if lens else ()
        names = {f"h.{layer}.resid_post": layer for layer in before_last}
        with torch.inference_mode(), kept(self.model, names, lambda x: x[0, wanted]) as earlier:
            last = self.model.by_rows(self._ids(ids))[0, wanted]
            streams = {names[name]: stream for name, stream in earlier.items()}
            for layer, stream in [*streams.items(), (None, last)]:
                for part in torch.split(torch.arange(len(wanted)), LOGIT_ROWS):
                    logits = self.model.read_out(stream[part])  # (rows, V)
                    consume(LogitRows(layer, wanted[part].numpy(), logits.float().cpu().numpy()))

    def vectors(self, ids: Ids, position: int) -> FloatArray:
        names = ("h.0.resid_pre", *(f"h.{n}.resid_post" for n in range(len(self.model.h))))
        with torch.inference_mode(), kept(self.model, names, lambda x: x[0, position]) as streams:
            self.model.by_rows(self._ids(ids))
        return numbers(torch.stack([streams[name] for name in names]))

    @property
    def stream_width(self) -> int:
        return self.model.config.n_embd

    def steered(self, vectors: Mapping[int, FloatArray], about: str) -> LoadedModel:
        def adding_to(model: Decoder) -> Decoder:
            view = model
            for layer, vector in vectors.items():
                view = with_added(view, f"h.{layer}.resid_pre", torch.from_numpy(vector))
            vars(view)["dense"] = lambda: adding_to(model.dense())
            return view

        identity = self.identity.with_added(about)
        return replace(self, model=adding_to(self.model), prefix=None, identity=identity)

    def output_vectors(self) -> Tensor:
        return self.model.unembedding

    def check_contributions(self) -> None:
        """It has projections, and none of its parts is hidden."""

    def value_norms(self, ids: Ids) -> FloatArray:
        norms: list[Tensor] = []

        def measure(w_o: Tensor) -> Hook:
            def keep(v: Tensor) -> None:  # (1, g, n, d_v)
                own = v[0].repeat_interleave(len(w_o) // v.size(1), dim=0)
                norms.append((own @ w_o).norm(dim=-1))

            return keep

        layers = range(len(self.model.h))
        hooks = {f"h.{i}.attn.v": measure(self.model.block(i).output[0]) for i in layers}
        with torch.inference_mode(), attached(self.model, hooks):
            self.model.by_rows(self._ids(ids))
        return numbers(torch.stack(norms))

    def intervene(self, ids: Ids, interventions: Interventions, consume: RunConsumer) -> None:
        with torch.inference_mode():
            intervene_native(self.model, self._ids(ids), interventions, consume)

    def site_vectors(self, ids: Ids, sites: Collection[Site]) -> dict[Site, FloatArray]:
        with torch.inference_mode():
            of_sites = vectors_of(self.model, SourceRun(ids, range(len(ids))), sites, mean=False)
            return {site: numbers(vectors) for site, vectors in of_sites.items()}

    def paths(self, ids: Ids, paths: Paths, consume: PathConsumer) -> None:
        with torch.inference_mode():
            paths_native(self._dense, self._ids(ids), paths, consume)

    def first_order(self, ids: Ids, slope_of: SlopeOf) -> FirstOrder:
        return slopes_native(self.model, ids, slope_of)

    def generate(
        self, ids: Ids, sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        """Each token is read once, thanks to a cache at the hook points of keys and values."""
        model = self._dense
        points = {f"h.{layer}.attn.pattern": layer for layer in wanted.heads}
        every = [f"h.{layer}.attn.{name}" for layer in range(len(model.h)) for name in "kv"]

        def next_logits(new: Ids) -> Tensor:  # (V)
            read = self._ids([*ids[-1:], *new][-1:])
            n = len(ids) + len(new)
            at = torch.tensor([n - 1], device=read.device)
            stream = model.hidden(read, positions=at)  # (1, 1, d)
            return model.read_out(stream[0, -1])

        written = {
            layer: HeadsWriting(model.block(layer).output[0])
            for layer in (wanted.heads if wanted.contributions else ())
        }

        def take(layer: int, queries: Tensor, row: Tensor) -> None:
            handover.take(layer, queries, written[layer].of(row) if written else row)

        handover = Handover(wanted, consume)
        values: dict[str, Hook] = {f"h.{layer}.attn.v": each.v for layer, each in written.items()}
        caches = {point: _cache(len(ids) + sampling.most) for point in every}
        with attached(model, caches), attached(model, values):  # of all tokens so far
            if len(ids) > 1:  # no row of these is wanted
                rows = rows_at_a_time(len(ids), model.config.n_head)
                with torch.inference_mode():
                    model.hidden(self._ids(ids[:-1]), rows=rows)
            write_tokens(model, points, next_logits, sampling, self.ends, take, go_on)

    def having_read(self, ids: Ids) -> LoadedModel:
        if not self.model.fixed_positions:
            return self
        return replace(self, prefix=read_prefix(self._dense, ids))

    @torch.inference_mode()
    def answered(self, prompts: Sequence[Ids], answer: Ids) -> Tensor:
        prefix = self.prefix or ReadPrefix(self._dense)
        texts = torch.cat([self._ids([*ids, *answer[:-1]]) for ids in prompts])
        shared = [prefix.shared(ids) for ids in prompts]
        streams = dict[int, Tensor]()
        for n in set(shared):
            own = [i for i, each in enumerate(shared) if each == n]
            streams |= zip(own, prefix.ends(texts[own], n, len(answer)), strict=True)
        return prefix.model.read_out(torch.stack([streams[i] for i in range(len(texts))]))

    def freeze(self, ids: Ids) -> FrozenRun:
        return freeze_decoder(self.model, self._ids(ids))

    def last(self, ids: Ids, rests: FindRests | None = None) -> LastRead:
        return read_last(self.model, self._ids(ids), rests)

    def record(
        self, ids: Ids, heads: Sequence[Head], query: int, target: Ids = ()
    ) -> Sequence[RecordedHead]:
        read = self._ids(ids)[0]
        if isinstance(self.model, Llama):
            return llama_record(self.model, read, heads, query)
        assert isinstance(self.model, GPT)
        return gpt_record(self.model, read, heads, query)


LAYER_POINTS = ("q", "k", "pattern", "z")
HELD = 1 << 24  # weights of a layer, until it is known which of them are wanted again
AGAIN_ROWS = 256  # of one head to compute at a time, where they were not held


@dataclass
class _LayerRun:
    """What passes the hook points of a layer, given to a reduction."""

    layer: int
    heads: list[int]
    block: CausalBlock
    windows: slice
    reduction: RowReduction
    last: bool
    _first: int = 0
    _queries_and_keys: tuple[Tensor, ...] = ()
    _held: list[tuple[int, Tensor]] = field(default_factory=list)

    def q(self, q: Tensor) -> None:
        self._queries_and_keys = (q,)

    def k(self, k: Tensor) -> None:
        self._queries_and_keys += (k,)

    def pattern(self, pattern: Tensor) -> None:  # (B, h, rows, n)
        own = pattern if len(self.heads) == pattern.size(1) else pattern[:, self.heads]
        self.reduction.take(HeadRows(self.layer, self.windows, self._first, own))
        whole = pattern[:, :, 0, 0].numel() * self._queries_and_keys[1].size(2) ** 2
        if self.reduction.asks_again and whole <= HELD:
            self._held.append((self._first, pattern))
        self._first += pattern.size(2)

    def z(self, _: Tensor) -> None:
        wanted = self.reduction.again(self.layer, self.windows)
        for window, heads in grouped(wanted).items():
            for some in self._held_rows(window, heads) or self._rows_again(window, heads):
                self.reduction.take_again(some)
        self._held, self._queries_and_keys = [], ()  # the hooks live until the run ends
        if self.last:
            raise EnoughSeen

    def _held_rows(self, window: int, heads: list[int]) -> list[SomeHeadRows]:
        return [
            SomeHeadRows(self.layer, [(window, h) for h in heads], first, pattern[window, heads])
            for first, pattern in self._held
        ]

    def _rows_again(self, window: int, heads: list[int]) -> Iterator[SomeHeadRows]:
        """Each head alone, so that its numbers do not depend on which others are wanted."""
        q, k = (each[window] for each in self._queries_and_keys)
        group = len(q) // len(k)
        for head in heads:
            for rows in torch.split(torch.arange(q.size(1)), AGAIN_ROWS):
                seen = k[head // group, : int(rows[-1]) + 1]
                weights = self.block.weights(q[head, rows], seen, rows)[None]
                yield SomeHeadRows(self.layer, [(window, head)], int(rows[0]), weights)


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
    """Load the folder of a GPT-2 or of a Llama-like model into a model from scratch."""
    sizes, card, tokenizer = read_folder(folder, name)
    if name != BUILTIN:
        check_weights(folder, placement)
    own = llama_config(folder)
    model: Decoder
    if own is None:
        model, ends = load_checkpoint(folder), gpt2_config(folder).ends
    else:
        model, ends = load_llama(folder, own, placement.torch_dtype()), own.ends
    # the built-in model is too small to be worth the way to another device
    if name != BUILTIN or placement.device != "auto":
        model = model.to(placement.torch_device())
    published = model.published()
    identity = ModelIdentity(
        name=name,
        architecture=sizes.architecture,
        heads_per_layer=sizes.heads_per_layer,
        parameters=sum(p.numel() for p in published.values()),
        engine="native",
        dtype=str(placement.torch_dtype()).removeprefix("torch."),
        revision=revision,
        fingerprint=fingerprint(published, dtype=model.dtype),
        differs=tokenizer.differs,
    )
    return NativeModel(identity=identity, card=card, tokenizer=tokenizer, model=model, ends=ends)


MAPPED = (torch.float32, torch.bfloat16, torch.float16)
"""Precisions whose numbers float32 has, too."""


def load_llama(folder: Path, config: LlamaConfig, dtype: torch.dtype) -> Llama:
    """Load a folder's Llama-like model, computed in `dtype`.

    For float32 the weights stay those of the file, mapped, in their own precision.
    """
    with without_memory():
        model = Llama(config, dtype)
    check_parameters(sum(p.numel() for p in model.parameters()), folder)
    shapes = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    state = from_transformers(config, shapes, read_weights(folder))
    exact = dtype == torch.float32
    own = {n: w if exact and w.dtype in MAPPED else w.to(dtype) for n, w in state.items()}
    fill(model, own, folder, dtype=None)
    return model


# Its folder, in Hugging Face's GPT-2 layout: config.json, model.safetensors and tokenizer.json, and
# perhaps card.json.


def load_checkpoint(folder: Path) -> GPT:
    """Load a folder's model, ready to run (no gradients, evaluation mode)."""
    config = gpt2_config(folder)
    check_computable(config, folder)
    check_parameters(config.sizes.parameters, folder)
    with without_memory():
        model = GPT(config.sizes)
    fill(model, from_gpt2(read_weights(folder)), folder)
    return model


def save_checkpoint(folder: Path, model: GPT, tokenizer: Tokenizer) -> None:
    """Write the folder; transformers' `GPT2LMHeadModel.from_pretrained` can read it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = _written_config(model.config, tokenizer)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(to_gpt2(model.state_dict()), folder / WEIGHTS, metadata={"format": "pt"})
    tokenizer.save(str(folder / TOKENIZER))


def _written_config(config: GPTConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """The config.json of a GPT-2; BOS and EOS are the tokenizer's `<|endoftext|>`."""
    end = tokenizer.token_to_id("<|endoftext|>")
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        **{field.name: getattr(config, field.name) for field in fields(GPTConfig)},
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": True,
        "bos_token_id": end,
        "eos_token_id": end,
        "dtype": "float32",
    }
