"""Plain hooks on modules that are named here by hand: the oracle of interventions."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

import attnviz
from attnviz.records.heads import Head
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Interventions,
    Site,
    SiteKind,
    SourceRun,
)
from tests.architectures import BEFORE_5_24, engine_of

IDS = [5, 6, 7, 8, 9, 5, 6]
SOURCE = SourceRun([15, 6, 17, 8, 5, 9, 11, 3], [0, 1, 3, 4, 4, 6, 7])
HEADS = 4
NEAR = 1e-5
LLAMA = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT = {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": HEADS}
GQA = {"num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}


@dataclass(frozen=True)
class Architecture:
    """An architecture's modules by name: the list of its layers, and those in a layer.

    `w_o`: the output projection. `attention`, `mlp`: the modules whose outputs are added to the
    stream. `switches`: its attention function can be replaced.
    """

    config: str
    sizes: dict[str, Any]
    layers: str
    w_o: str
    mlp: str
    attention: str = ""
    switches: bool = True

    def model(self, dtype: torch.dtype = torch.float32) -> Any:
        """The model, always with the same weights, whose attention is not nearly flat."""
        torch.manual_seed(0)
        config = getattr(transformers, f"{self.config}Config")(**self.sizes)
        config.tie_word_embeddings = False
        how = None if self.switches else "eager"
        model = AutoModelForCausalLM.from_config(config, attn_implementation=how)
        for parameter in model.parameters():
            nn.init.normal_(parameter, mean=float(parameter.dim() == 1), std=0.17)
        return model.to(dtype).eval().requires_grad_(False)

    def site(self, model: Any, site: Site) -> tuple[nn.Module, bool]:
        """The module where a site's vectors pass, and whether they are what it is given."""
        layer = model.get_submodule(self.layers)[site.layer]
        named = {"mlp": self.mlp, "attention": self.attention or self.w_o, "head": self.w_o}
        return layer.get_submodule(named.get(site.kind, "")), site.kind in ("head", "residual")


IN_ATTENTION = "model.layers", "self_attn.o_proj", "mlp"
ARCHITECTURES = {
    "gpt2": Architecture("GPT2", GPT, "transformer.h", "attn.c_proj", "mlp"),
    "llama, shared keys": Architecture("Llama", LLAMA | {"num_key_value_heads": 2}, *IN_ATTENTION),
    "gpt-neox, a parallel block": Architecture(
        "GPTNeoX", LLAMA, "gpt_neox.layers", "attention.dense", "mlp"
    ),
    "phi, one dropout for attention and mlp": Architecture(
        "Phi", LLAMA, "model.layers", "self_attn.dense", "mlp"
    ),
    "gemma 2, soft caps, norms behind both, a window": Architecture(
        "Gemma2",
        LLAMA | GQA | {"sliding_window": 4, "attn_logit_softcapping": 2.0},
        *("model.layers", "self_attn.o_proj", "post_feedforward_layernorm"),
        "post_attention_layernorm",
    ),
    "mistral, a window": Architecture(
        "Mistral", LLAMA | GQA | {"sliding_window": 4}, *IN_ATTENTION
    ),
    "gpt-oss, sinks, experts": Architecture(
        "GptOss", LLAMA | GQA | EXPERTS | {"sliding_window": 4}, *IN_ATTENTION
    ),
    "mixtral, experts": Architecture("Mixtral", LLAMA | GQA | EXPERTS, *IN_ATTENTION),
    "granite, scaled additions": Architecture(
        "Granite", LLAMA | GQA | {"residual_multiplier": 0.3}, *IN_ATTENTION
    ),
    "opt": Architecture(
        "OPT",
        LLAMA | {"ffn_dim": 40, "word_embed_proj_dim": 32},
        *("model.decoder.layers", "self_attn.out_proj", "fc2"),
    ),
    "gpt-j": Architecture(
        "GPTJ",
        GPT | {"rotary_dim": 4},
        *("transformer.h", "attn.out_proj", "mlp"),
        switches=not BEFORE_5_24,
    ),
    "falcon, which adds in place": Architecture(
        "Falcon", LLAMA, "transformer.h", "self_attention.dense", "mlp", switches=False
    ),
    "bloom": Architecture(
        "Bloom",
        {"vocab_size": 61, "hidden_size": 32, "n_layer": 2, "n_head": HEADS},
        *("transformer.h", "self_attention.dense", "mlp.dense_4h_to_h"),
        switches=False,
    ),
    "gpt-neo, local and global": Architecture(
        "GPTNeo",
        {"vocab_size": 61, "hidden_size": 32, "num_layers": 2, "num_heads": HEADS}
        | {"attention_types": [[["global", "local"], 1]], "window_size": 4},
        *("transformer.h", "attn.attention.out_proj", "mlp"),
        switches=False,
    ),
}
SWITCH = [name for name, a in ARCHITECTURES.items() if a.switches]
KEEP_TO_THEMSELVES = [name for name in ARCHITECTURES if name not in SWITCH]

SITES: dict[SiteKind, Site] = {
    "head": Site("head", 0, 1),
    "attention": Site("attention", 1),
    "mlp": Site("mlp", 0),
    "residual": Site("residual", 1),
}
# every kind of site: zero, mean and source; at all positions and at some
EDITS: list[Intervention] = [
    (Edit(site, by, positions),)
    for site in SITES.values()
    for by in ("zero", "mean", "source")
    for positions in (None, (6,), (1, 4))
]
TOGETHER: list[Intervention] = [
    # whole layers
    *(
        (Edit(Site("attention", n), by), Edit(Site("mlp", n), by))
        for n in (0, 1)
        for by in ("zero", "mean")
    ),
    # heads one behind the other: the later one's mean is that of the unchanged run
    (Edit(Site("head", 0, 1), "zero"), Edit(Site("head", 1, 2), "mean")),
    # heads of one layer
    tuple(Edit(Site("head", 1, head), "source") for head in (0, 2, 3)),
    # everything at once, in both layers
    (
        Edit(Site("head", 0, 0), "zero"),
        Edit(Site("head", 1, 3), "mean", (2, 5)),
        Edit(Site("attention", 0), "source", (3,)),
        Edit(Site("mlp", 1), "source"),
        Edit(Site("residual", 0), "source", (0,)),
        Edit(Site("residual", 1), "mean", (4,)),
    ),
    # other positions of one site, by other means
    (Edit(Site("head", 1, 1), "zero", (3,)), Edit(Site("head", 1, 1), "source", (4, 6))),
]
CUTS: list[Intervention] = [
    # one link, in both layers, of which some have windows
    (CutLink(Head(0, 1), 6, 5),),
    (CutLink(Head(0, 1), 6, 5, renormalise=True),),
    (CutLink(Head(1, 2), 3, 0),),
    (CutLink(Head(1, 2), 3, 0, renormalise=True),),
    # some keys of a row
    tuple(CutLink(Head(1, 3), 5, key) for key in (2, 4, 5)),
    tuple(CutLink(Head(1, 3), 5, key, renormalise=True) for key in (2, 4, 5)),
    # every head's
    tuple(CutLink(Head(layer, h), 4, 3) for layer in (0, 1) for h in range(HEADS)),
    tuple(CutLink(Head(layer, h), 4, 3, renormalise=True) for layer in (0, 1) for h in range(4)),
    # all keys of a row but one
    tuple(CutLink(Head(0, 2), 3, key, renormalise=True) for key in (0, 1, 2)),
    # rows of several heads, one of them renormalised
    (CutLink(Head(0, 0), 2, 1), CutLink(Head(0, 3), 6, 4, renormalise=True)),
    # beside an edit before it
    (Edit(Site("residual", 0), "source", (3,)), CutLink(Head(0, 2), 6, 3)),
]

EVERY_HEAD = [Head(layer, head) for layer in (0, 1) for head in range(HEADS)]
BEFORE = [(query, key) for query in range(len(IDS)) for key in range(query)]
# one of each kind, in both layers: each changes much
STRONG: list[Intervention] = [
    tuple(Edit(Site("head", *head), "zero") for head in EVERY_HEAD),
    tuple(Edit(Site("attention", layer), "mean") for layer in (0, 1)),
    tuple(Edit(Site("mlp", layer), "zero") for layer in (0, 1)),
    (Edit(Site("residual", 1), "source"),),
    tuple(CutLink(head, *link) for head in EVERY_HEAD for link in BEFORE),
    tuple(CutLink(head, *link, renormalise=True) for head in EVERY_HEAD for link in BEFORE),
]


def every_site_of(interventions: Sequence[Intervention]) -> set[Site]:
    return {c.site for changes in interventions for c in changes if isinstance(c, Edit)}


# The oracle: one run for each intervention, alone.


@contextmanager
def passing(
    module: nn.Module, incoming: bool, change: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    """Replace what a module is given, or what it gives."""

    def before(_: Any, args: Any, named: Any) -> Any:
        if args:
            return (change(args[0]), *args[1:]), named
        return args, named | {"hidden_states": change(named["hidden_states"])}

    def after(_: Any, _args: Any, out: Any) -> Any:
        return (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)

    handle = (
        module.register_forward_pre_hook(before, with_kwargs=True)
        if incoming
        else module.register_forward_hook(after)
    )
    yield
    handle.remove()


def logits_of(model: Any, ids: Sequence[int] = IDS) -> Tensor:
    with torch.inference_mode():
        found: Tensor = model(torch.tensor([list(ids)]), use_cache=False).logits[0]
    return found


def part_of(vectors: Tensor, site: Site) -> Tensor:
    """A site's part (n, width) of the vectors of all heads, or all; it is a view."""
    rows = vectors.view(-1, vectors.size(-1))
    width = rows.size(-1) // HEADS
    return rows if site.head is None else rows[:, site.head * width : (site.head + 1) * width]


def vectors_in_source(architecture: Architecture, model: Any) -> dict[tuple[str, Site], Tensor]:
    """The sites' vectors in the source, at the places of the text, and in the text, for means."""
    found: dict[tuple[str, Site], Tensor] = {}
    runs = {"source": SOURCE, "mean": SourceRun(IDS, range(len(IDS)))}
    for by, run in runs.items():
        for site in every_site_of(EDITS + TOGETHER + CUTS + STRONG):

            def keep(
                vectors: Tensor, at: tuple[str, Site] = (by, site), run: SourceRun = run
            ) -> Tensor:
                found[at] = part_of(vectors, at[1])[list(run.places)].clone()
                return vectors

            with passing(*architecture.site(model, site), keep):
                logits_of(model, run.ids)
    return found


def edited(edit: Edit, source: dict[tuple[str, Site], Tensor]) -> Callable[[Tensor], Tensor]:
    def change(vectors: Tensor) -> Tensor:
        vectors = vectors.clone()
        rows = part_of(vectors, edit.site)
        for n in range(len(IDS)) if edit.positions is None else edit.positions:
            if edit.by == "source":
                rows[n] = source["source", edit.site][n]
            elif edit.by == "mean":
                rows[n] = sum(source["mean", edit.site]) / len(IDS)  # type: ignore[assignment]
            else:
                rows[n] = 0
        return vectors

    return change


def attention_without(cuts: Sequence[CutLink]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Attention, written out, that lacks some links."""

    def attend(
        module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **more: Any
    ) -> tuple[Tensor, Tensor]:
        mine = [c for c in cuts if c.head.layer == module.layer_idx]
        k, v = (t.repeat_interleave(q.size(1) // t.size(1), dim=1) for t in (k, v))
        scores = q @ k.transpose(2, 3) * (more.get("scaling") or q.size(-1) ** -0.5)
        if more.get("softcap"):
            scores = more["softcap"] * torch.tanh(scores / more["softcap"])
        scores = scores + mask
        for cut in mine:
            if cut.renormalise:
                scores[:, cut.head.head, cut.query, cut.key] = -torch.inf
        if hasattr(module, "sinks"):
            sinks = module.sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            scores = torch.cat([scores, sinks], dim=3)
        pattern = scores.softmax(dim=3)[..., : k.size(2)]
        for cut in mine:
            pattern[:, cut.head.head, cut.query, cut.key] = 0
        return (pattern @ v).transpose(1, 2), pattern

    return attend


def oracle(
    architecture: Architecture,
    model: Any,
    changes: Intervention,
    source: dict[tuple[str, Site], Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> Tensor:
    """The logits (n, V) under one intervention."""
    cuts = [change for change in changes if isinstance(change, CutLink)]
    with ExitStack() as stack, monkeypatch.context() as patch:
        if cuts:
            file = sys.modules[type(model).__module__]
            patch.setattr(file, "eager_attention_forward", attention_without(cuts))
            patch.setattr(model.config, "_attn_implementation", "eager")
        for change in changes:
            if isinstance(change, Edit):
                place = architecture.site(model, change.site)
                stack.enter_context(passing(*place, edited(change, source)))
        return logits_of(model)


def runs_of(
    model: Any,
    interventions: Sequence[Intervention],
    ids: Sequence[int] = IDS,
    source: SourceRun = SOURCE,
    through: Callable[..., None] | None = None,
) -> list[ChangedRun]:
    """The runs in order, by the transformers engine, or `through` the native one's method."""
    found: dict[int, ChangedRun] = {}

    def keep(run: ChangedRun) -> None:
        assert run.index not in found
        found[run.index] = run

    through = through or engine_of(model).intervene
    through(ids, Interventions(interventions, whole=True, source=source), keep)
    assert sorted(found) == list(range(len(interventions)))
    return [found[index] for index in range(len(interventions))]


def followed(logits: Tensor, ids: Sequence[int] = IDS) -> Tensor:
    return logits[:-1].log_softmax(-1)[range(len(ids) - 1), list(ids[1:])]


# Texts of words for these models, and sets of parts replaced by what they are on another text.

WORDS, OTHER_WORDS = "w5 w6 w7 w8 w9 w5 w6", "w15 w6 w17 w8 w5 w9 w11"
Replaced = dict[tuple[str, int], set[int]]
"""The heads of ("head", layer) whose outputs are replaced; of ("mlp", layer), {0}: its output."""


def with_words(model: Any) -> attnviz.Model:
    """The model behind a tokenizer of the words w0 to w60."""
    made = Tokenizer(WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    made.pre_tokenizer = WhitespaceSplit()
    return attnviz.load_model(model, PreTrainedTokenizerFast(tokenizer_object=made))


def ids_of(words: str) -> list[int]:
    return [int(word[1:]) for word in words.split()]


def last_logits(
    architecture: Architecture, model: Any, replaced: Replaced, by: str, text: str = WORDS
) -> Tensor:
    """The logits (V) after the text, by a plain hook on each module, one run after the other.

    `by`: "zero", "mean" (over the text's positions), or the words of another text.
    """
    modules = {
        at: architecture.site(model, Site("mlp" if at[0] == "mlp" else "head", at[1]))
        for at in replaced
    }
    kept: dict[tuple[str, int], Tensor] = {}
    with ExitStack() as stack:
        for at, (module, incoming) in modules.items():

            def keep(values: Tensor, at: tuple[str, int] = at) -> Tensor:
                kept[at] = values.clone()
                return values

            stack.enter_context(passing(module, incoming, keep))
        logits_of(model, ids_of(text if by in ("zero", "mean") else by))
    with ExitStack() as stack:
        for at, (module, incoming) in modules.items():

            def put(values: Tensor, at: tuple[str, int] = at) -> Tensor:
                instead = kept[at].view(values.shape)
                if by == "zero":
                    instead = torch.zeros_like(values)
                elif by == "mean":
                    n = len(ids_of(text))
                    instead = instead.reshape(n, -1).mean(0).expand(n, -1).reshape(values.shape)
                changed, width = values.clone(), values.shape[-1]
                width = width // HEADS if at[0] == "head" else width
                for head in replaced[at]:
                    own = slice(head * width, (head + 1) * width)
                    changed[..., own] = instead[..., own]
                return changed

            stack.enter_context(passing(module, incoming, put))
        return logits_of(model, ids_of(text))[-1]
