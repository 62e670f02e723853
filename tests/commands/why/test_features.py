"""`--features`: a score, or a logit, by the features of a sparse autoencoder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import attnviz
from attnviz.errors import AttnvizError, ExitStatus, ModelError
from attnviz.models.frozen.features import read_dictionary
from tests.conftest import Run
from tests.hooked import Hooked
from tests.reading import on_one_line

TEXT = "a fluffy blue creature roamed . the creature was"
WIDTH, LAYERS = 128, 5
ARCHITECTURES = "standard", "topk", "jumprelu", "gated"


def saved(folder: Path, layer: int = 4, **more: Any) -> Path:
    """A dictionary of 96 random features, in the layout of sae-lens."""
    draw = torch.Generator().manual_seed(1)
    features = 96
    weights = {
        "W_enc": torch.randn(WIDTH, features, generator=draw) / 4,
        "W_dec": torch.randn(features, WIDTH, generator=draw) / 8,
        "b_dec": torch.randn(WIDTH, generator=draw) / 8,
    }
    for name in ("b_enc", "b_gate", "b_mag", "r_mag", "threshold"):
        weights[name] = torch.randn(features, generator=draw) / 4
    settings = {"architecture": "standard", "hook_name": f"blocks.{layer}.hook_resid_pre", **more}
    for name, change in settings.pop("weights", {}).items():
        weights[name] = change(weights[name]) if change else torch.zeros(0)
        if change is None:
            del weights[name]
    if "extra" in settings:
        weights[settings.pop("extra")] = torch.zeros(2, 2)
    folder.mkdir(exist_ok=True)
    save_file(weights, folder / "sae_weights.safetensors")
    (folder / "cfg.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def signed_axes(folder: Path, layer: int) -> Path:
    """A dictionary that explains all: feature i is coordinate i above 0, and 128 + i below."""
    axes = torch.eye(WIDTH)
    decoder = torch.cat([axes, -axes])
    weights = {"W_enc": decoder.T.contiguous(), "W_dec": decoder, "b_enc": torch.zeros(2 * WIDTH)}
    folder.mkdir(exist_ok=True)
    save_file({**weights, "b_dec": torch.zeros(WIDTH)}, folder / "sae_weights.safetensors")
    where = "post" if layer == LAYERS else "pre"
    hook = f"blocks.{layer - (where == 'post')}.hook_resid_{where}"
    settings = {"architecture": "standard", "metadata": {"hook_name": hook}}
    (folder / "cfg.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


class Exact:
    """The built-in model in transformers, in float64: the streams, and a norm that is held."""

    def __init__(self) -> None:
        self.hooked = Hooked()
        self.hooked.model.set_attn_implementation("eager")
        self.ids = torch.tensor([self.hooked.ids(TEXT)])
        with torch.no_grad():
            out = self.hooked.model(self.ids, output_hidden_states=True, output_attentions=True)
        self.streams = self._streams(out)
        self.attentions = [each[0].double().numpy() for each in out.attentions]
        self.logits = out.logits[0, -1].double().numpy()

    def _streams(self, out: Any) -> list[np.ndarray]:
        kept = list[torch.Tensor]()
        last = self.hooked.model.transformer.ln_f
        handle = last.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
        with torch.no_grad():
            self.hooked.model(self.ids)
        handle.remove()
        return [each[0].double().numpy() for each in (*out.hidden_states[:-1], kept[0])]

    def held(self, norm: torch.nn.LayerNorm, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What a norm that is held at x makes of vectors v of the same token, without its bias."""
        spread = np.sqrt(x.var(axis=-1, keepdims=True) + norm.eps)
        weight = norm.weight.detach().double().numpy()
        made: np.ndarray = (v - v.mean(axis=-1, keepdims=True)) / spread * weight
        return made


def test_the_features_of_a_query_and_its_keys_make_the_score_in_closed_form(tmp_path: Path) -> None:
    exact, (layer, head, query, key) = Exact(), (4, 0, 9, 2)
    folder = signed_axes(tmp_path / "axes", layer)
    why = attnviz.why(TEXT, head="L4H0", query=query, key=key, features=folder, group="part").record
    block, x = exact.hooked.model.transformer.h[layer], exact.streams[layer]
    w = block.attn.c_attn.weight.detach().double().numpy()
    b = block.attn.c_attn.bias.detach().double().numpy()
    width = exact.hooked.width
    own = [slice(i * WIDTH + head * width, i * WIDTH + (head + 1) * width) for i in (0, 1)]
    normed = exact.held(block.ln_1, x, x) + block.ln_1.bias.detach().double().numpy()
    q, k = (normed @ w[:, one] + b[one] for one in own)
    share = -exact.attentions[layer][head, query]
    share[key] += 1  # less the mean of the row
    keys = share @ k / np.sqrt(width)
    axes = np.eye(WIDTH)
    for part, value in zip(why.query_shares.parts, why.query_shares.values[0], strict=True):
        if part.kind == "feature" and part.source == query:
            i = part.feature % WIDTH
            assert np.sign(x[query, i]) == (1 if part.feature < WIDTH else -1)
            vector = exact.held(block.ln_1, x[query], x[query, i] * axes[i])
            assert value == pytest.approx(vector @ w[:, own[0]] @ keys, abs=1e-5)
    found = 0
    for part, value in zip(why.key_shares.parts, why.key_shares.values[0], strict=True):
        if part.kind == "feature":
            i, j = part.feature % WIDTH, part.source
            vector = exact.held(block.ln_1, x[j], x[j, i] * axes[i])
            wanted = share[j] * (vector @ w[:, own[1]] @ q[query]) / np.sqrt(width)
            assert value == pytest.approx(wanted, abs=1e-5)
            found += abs(wanted) > 1e-3
    assert found > 100
    left = [i for i, part in enumerate(why.key_shares.parts) if part.kind == "unexplained"]
    assert np.abs(why.key_shares.values[0, left]).max() < 1e-5
    assert why.explained.share == pytest.approx(1)
    assert {part.kind for part in why.key_shares.parts} == {"feature", "unexplained", "biases"}


def test_the_features_of_the_last_stream_make_the_logit_in_closed_form(tmp_path: Path) -> None:
    exact = Exact()
    folder = signed_axes(tmp_path / "axes", LAYERS)
    found = attnviz.predict(TEXT, answer="blue", attribute=True, features=folder)
    x, norm = exact.streams[LAYERS][-1], exact.hooked.model.transformer.ln_f
    row = exact.hooked.model.lm_head.weight.detach().double().numpy()
    id_ = found.record.attribution.token.id
    shares = found.record.attribution.shares
    for part, value in zip(shares.parts, shares.values[0], strict=True):
        if part.kind == "feature":
            i = part.feature % WIDTH
            wanted = exact.held(norm, x, x[i] * np.eye(WIDTH)[i]) @ row[id_]
            assert value == pytest.approx(wanted if part.source == 9 else 0, abs=1e-4)
    assert found.record.attribution.logit == pytest.approx(exact.logits[id_], abs=1e-3)
    assert found.rows[0]["feature"] is not None
    assert found.rows[0]["kind"] == "feature"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("centred", [True, False])
def test_every_architecture_encodes_by_its_own_formula(
    tmp_path: Path, architecture: str, centred: bool
) -> None:
    more = {"architecture": architecture, "apply_b_dec_to_input": centred, "k": 7}
    dictionary = read_dictionary(saved(tmp_path / "own", **more), WIDTH, LAYERS)
    x = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(2))
    w = {name: each.double().numpy() for name, each in dictionary.tensors.items()}
    for row, active in zip(x.double().numpy(), dictionary.encode(x).numpy(), strict=True):
        inner = row - w["b_dec"] if centred else row
        for f in range(96):
            dot = inner @ w["W_enc"][:, f]
            if architecture == "gated":
                size = dot * np.exp(w["r_mag"][f]) + w["b_mag"][f]
                wanted = max(size, 0) if dot + w["b_gate"][f] > 0 else 0
            else:
                wanted = max(dot + w["b_enc"][f], 0)
            if architecture == "jumprelu" and dot + w["b_enc"][f] <= w["threshold"][f]:
                wanted = 0
            if architecture == "topk":
                every = inner @ w["W_enc"] + w["b_enc"]
                wanted = wanted if (every > every[f]).sum() < 7 else 0
            assert active[f] == pytest.approx(wanted, abs=1e-5)
    assert 0 < int((dictionary.encode(x) > 0).sum()) < 5 * 96


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("layer", [0, 2, 4])
def test_features_and_what_none_explains_add_up_to_the_contrast(
    tmp_path: Path, architecture: str, layer: int
) -> None:
    folder = saved(tmp_path / "own", layer, architecture=architecture, k=9)
    asked = {"head": "L4H1", "query": "was", "depth": 2, "check": True}
    why = attnviz.why(TEXT, features=folder, **asked).record
    plain = attnviz.why(TEXT, **asked).record
    assert why.contrast == pytest.approx(plain.contrast, abs=1e-5)
    for shares in (why.query_shares, why.key_shares):
        assert shares.values.sum() == pytest.approx(why.contrast, abs=1e-4)
        kinds = {part.kind for part in shares.parts}
        assert kinds >= {"feature", "unexplained", "biases"}
        assert ("mlp" in kinds) == (layer < 4)
        assert "embedding" not in kinds
    assert why.table.sum() == pytest.approx(why.contrast, abs=1e-4)
    for removal in why.removals:
        assert removal.fixed == pytest.approx(removal.predicted, abs=1e-4)


POINTS = "hook_resid_mid", "hook_mlp_in", "mlp.hook_in", "hook_mlp_out"


def of_mlp(folder: Path, layer: int, point: str, **more: Any) -> Path:
    hooks = {"hook_name": f"blocks.{layer}.{point}"}
    if point != "hook_mlp_out":
        hooks["hook_name_out"] = f"blocks.{layer}.hook_mlp_out"
    return saved(folder, layer, **{"architecture": "transcoder", **hooks, **more})


@pytest.mark.parametrize("engine", ["native", "transformers"])
@pytest.mark.parametrize("point", POINTS)
def test_the_features_of_an_mlp_make_the_logit_in_closed_form(
    tmp_path: Path, point: str, engine: str
) -> None:
    exact, norm = Exact(), Exact().hooked.model.transformer.ln_f
    block, seen = exact.hooked.model.transformer.h[4], dict[str, np.ndarray]()
    handles = [
        block.ln_2.register_forward_pre_hook(lambda _, a: seen.update(mid=a[0][0].numpy())),
        block.mlp.register_forward_hook(
            lambda _, a, out: seen.update(into=a[0][0].numpy(), out=out[0].numpy())
        ),
    ]
    with torch.no_grad():
        exact.hooked.model(exact.ids)
    for handle in handles:
        handle.remove()
    mid, into, out = (seen[name].astype(float)[-1] for name in ("mid", "into", "out"))
    read = {"mlp.hook_in": into, "hook_mlp_out": out}.get(point, mid)
    architecture = "standard" if point == "hook_mlp_out" else "jumprelu_transcoder"
    folder = of_mlp(
        tmp_path / "own", 4, point, architecture=architecture, apply_b_dec_to_input=False
    )
    w = {k: v.double().numpy() for k, v in read_dictionary(folder, WIDTH, LAYERS).tensors.items()}
    pre = read @ w["W_enc"] + w["b_enc"]
    active = np.maximum(pre, 0) * (pre > w["threshold"] if "threshold" in w else 1)
    model = attnviz.load_model("builtin", engine=engine)
    found = attnviz.predict(TEXT, model, answer="blue", attribute=True, features=folder)
    attribution = found.record.attribution
    row = exact.hooked.model.lm_head.weight.detach().double().numpy()[attribution.token.id]
    last = exact.streams[LAYERS][-1]
    values = dict(zip(attribution.shares.parts, attribution.shares.values[0], strict=True))
    own = {p.feature: value for p, value in values.items() if p.kind == "feature" and p.source == 9}
    assert own.keys() == set(np.flatnonzero(active))
    for feature, value in own.items():
        wanted = exact.held(norm, last, active[feature] * w["W_dec"][feature]) @ row
        assert value == pytest.approx(wanted, abs=1e-3)
    left = out - active @ w["W_dec"] - w["b_dec"]
    unexplained = next(v for p, v in values.items() if p.kind == "unexplained" and p.source == 9)
    assert unexplained == pytest.approx(exact.held(norm, last, left) @ row, abs=1e-3)
    plain = attnviz.predict(TEXT, model, answer="blue", attribute=True).record.attribution.shares
    others = dict(zip(plain.parts, plain.values[0], strict=True))
    for part, value in values.items():
        if part.kind in ("head", "mlp", "embedding", "position"):
            assert value == pytest.approx(others[part], abs=1e-5)
            assert (part.kind, part.layer) != ("mlp", 4)


@pytest.mark.parametrize("engine", ["native", "transformers"])
@pytest.mark.parametrize("point", POINTS)
def test_features_of_an_mlp_and_all_other_parts_add_up(
    tmp_path: Path, point: str, engine: str
) -> None:
    folder = of_mlp(tmp_path / "own", 2, point)
    if point == "hook_mlp_out":
        folder = of_mlp(tmp_path / "own", 2, point, architecture="gated")
    model = attnviz.load_model("builtin", engine=engine)
    asked = {"head": "L4H1", "query": "was", "depth": 2, "check": True}
    why = attnviz.why(TEXT, model, features=folder, **asked).record
    plain = attnviz.why(TEXT, model, **asked).record
    assert why.contrast == pytest.approx(plain.contrast, abs=1e-5)
    for shares in (why.query_shares, why.key_shares):
        assert shares.values.sum() == pytest.approx(why.contrast, abs=1e-4)
        assert {"feature", "unexplained", "embedding", "head"} <= {p.kind for p in shares.parts}
        assert {p.layer for p in shares.parts if p.kind == "mlp"} == {0, 1, 3}
    for removal in why.removals:
        assert removal.fixed == pytest.approx(removal.predicted, abs=1e-4)


def test_a_head_that_does_not_read_an_mlp_is_not_asked_about_it(tmp_path: Path, run: Run) -> None:
    folder = str(of_mlp(tmp_path / "own", 2, "mlp.hook_in"))
    ended = run("why", TEXT, "--head", "L2H0", "--features", folder)
    assert ended.status is ExitStatus.USAGE
    assert "L2H0 does not read what the MLP of layer 2 writes" in ended.err
    asked = "why", TEXT, "--head", "L3H0", "--features", folder
    said = (
        "features are of the dictionary own, of what the MLP of layer 2 writes: on this text, what "
        "they add up to is farther from it than its mean"
    )
    assert said in on_one_line(run(*asked).out)
    explained = json.loads(run(*asked, "-f", "json").out)["explained"]
    assert explained["share"] < 0
    assert (explained["layer"], explained["mlp"]) == (2, True)


def test_the_norm_of_a_hook_point_that_versions_place_otherwise_is_refused(tmp_path: Path) -> None:
    folder = of_mlp(tmp_path / "own", 2, "ln2.hook_normalized")
    with pytest.raises(ModelError, match="of a LayerNorm is before or behind its weight"):
        attnviz.why(TEXT, head="L4H0", features=folder)


def test_one_token_has_no_variance_to_explain(tmp_path: Path, run: Run) -> None:
    folder = str(saved(tmp_path / "own", 3))
    asked = "predict", "a", "--no-bos", "--attribute", "--features", folder
    assert on_one_line(run(*asked).out).endswith("of the stream before layer 3")
    ended = run(
        "why", "--lines", "-", "--head", "L4H0", "--features", folder, stdin=b"a cat\na dog"
    )
    assert "of the stream before layer 3 ± s.e." in on_one_line(ended.out)


def test_a_long_text_of_many_features_is_refused_before_it_is_encoded(tmp_path: Path) -> None:
    model = attnviz.load_model("builtin", max_memory=4_000_000)
    with pytest.raises(AttnvizError, match="memory"):
        attnviz.why(TEXT, model, head="L4H0", features=saved(tmp_path / "own", 4))


def test_what_no_feature_explains_has_a_row_of_its_own(tmp_path: Path, run: Run) -> None:
    folder = str(saved(tmp_path / "own"))
    asked = TEXT, "--head", "L4H0", "--features", folder
    shown = on_one_line(run("why", *asked, "--top", "2").out)
    assert shown.count("what no feature explains") >= 3
    said = "features are of the dictionary own, of the stream before layer 4: "
    assert said in shown
    written = json.loads(run("why", *asked, "-f", "json").out)
    assert written["explained"]["dictionary"] == "own"
    assert written["explained"]["layer"] == 4
    assert written["explained"]["share"] < 0
    assert "farther from it than its mean" in shown
    axes = run("why", TEXT, "--features", str(signed_axes(tmp_path / "axes", 4)), "--head", "L4H0")
    assert "they explain 100% of its variance over the tokens" in on_one_line(axes.out)
    parts = {part["kind"]: part for part in written["key_parts"]}
    assert parts["feature"]["feature"] in range(96)
    assert "feature" not in parts["unexplained"]
    logit = run("predict", TEXT, "--attribute", "--features", folder).out
    assert "what no feature explains" in logit
    assert "of the dictionary own" in on_one_line(logit)
    several = run(
        "predict", "--lines", "-", "--attribute", "--features", folder, stdin=b"a cat\na dog sat"
    )
    assert several.status is ExitStatus.OK
    assert run("why", *asked, "-o", str(tmp_path / "terms.svg")).status is ExitStatus.OK
    tree = run("why", *asked, "--depth", "2", "-o", str(tmp_path / "tree.svg"))
    assert tree.status is ExitStatus.OK


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"hook_name": "blocks.2.attn.hook_z"}, "is of 'blocks.2.attn.hook_z'"),
    ({"hook_name": "blocks.2.hook_resid_mid"}, "of no stream before a layer, and of no MLP"),
    ({"hook_name": None}, "is of 'None': of no stream"),
    ({"hook_name_out": "blocks.2.hook_mlp_out"}, "of no stream before a layer"),
    (
        {"hook_name": "blocks.2.mlp.hook_in", "hook_name_out": "blocks.3.hook_mlp_out"},
        "is of 'blocks.2.mlp.hook_in': of no stream",
    ),
    ({"hook_name": "blocks.5.hook_mlp_out"}, "is of layer 5, and this model has 5 layers"),
    ({"hook_name": "blocks.9.hook_resid_pre"}, "is of layer 9, and this model has 5 layers"),
    ({"architecture": "skip_transcoder"}, "has the architecture 'skip_transcoder'"),
    ({"architecture": ["standard"]}, "has the architecture"),
    ({"hook_name": "blocks.2.hook_resid_pre", "architecture": "transcoder"}, "of no stream"),
    ({"hook_name": "blocks.٢.hook_resid_pre"}, "of no stream"),
    ({"activation_fn_str": "tanh-relu"}, "has activation_fn_str = 'tanh-relu'"),
    ({"metadata": {"activation_fn": "gelu"}}, "has activation_fn = 'gelu'"),
    ({"weights": {"W_enc": lambda w: w.to(torch.complex64)}}, "has weights that are not numbers"),
    ({"weights": {"b_dec": lambda b: b.long()}}, "has weights that are not numbers"),
    ({"weights": {"W_dec": lambda w: w * 1e38}}, "features of 'own' are too large here"),
    ({"extra": "W_skip"}, "has W_skip, which is not known"),
    ({"architecture": "topk"}, "does not say how many features are active"),
    ({"architecture": "topk", "k": 97}, "does not say how many"),
    ({"architecture": "topk", "k": True}, "does not say how many"),
    ({"normalize_activations": "layer_norm"}, "has normalize_activations = 'layer_norm'"),
    ({"hook_head_index": 3}, "has hook_head_index = 3"),
    ({"metadata": {"hook_head_index": [1]}}, r"has hook_head_index = \[1\]"),
    (
        {"weights": {"W_dec": lambda w: w[:, :64].clone()}},
        r"has W_dec of the shape \(96, 64\), and not \(96, 128\) as for this model's width 128",
    ),
    ({"weights": {"b_enc": lambda b: b[:-1].clone()}}, r"has b_enc of the shape \(95,\)"),
    ({"architecture": "gated", "weights": {"b_gate": None}}, "has no b_gate"),
    ({"weights": {"b_dec": None}}, r"has no b_dec, and not \(128,\)"),
    ({"weights": {"b_dec": lambda b: b * torch.nan}}, "has weights that are not numbers"),
]


@pytest.mark.parametrize(("more", "wrong"), REFUSED)
def test_a_dictionary_that_is_not_of_the_stream_is_refused(
    tmp_path: Path, more: dict[str, Any], wrong: str
) -> None:
    folder = saved(tmp_path / "own", **more)
    with pytest.raises(AttnvizError, match=wrong):
        attnviz.why(TEXT, head="L4H0", features=folder)


def test_damaged_folders_and_other_heads_are_refused(tmp_path: Path, run: Run) -> None:
    asked = "why", TEXT, "--head", "L2H0", "--features"
    ended = run(*asked, str(saved(tmp_path / "own", 4)))
    assert ended.status is ExitStatus.USAGE
    assert "L2H0 does not read the stream before layer 4" in ended.err
    assert run(*asked, str(tmp_path / "own"), "--group", "layer").status is ExitStatus.USAGE
    assert "there is no file" in run(*asked, str(tmp_path / "none")).err
    for name, content in (
        ("cfg.json", b"["),
        ("cfg.json", b"[" * 100_000),
        ("cfg.json", b"[]"),
        ("cfg.json", b'{"metadata": 7, "hook_name": {}}'),
        ("sae_weights.safetensors", b"\x09\0\0\0\0\0\0\0{}"),
        ("sae_weights.safetensors", b"\xff" * 64),
        ("sae_weights.safetensors", b""),
    ):
        folder = saved(tmp_path / "own", 2)
        (folder / name).write_bytes(content)
        ended = run(*asked, str(folder))
        assert ended.status in (ExitStatus.MODEL, ExitStatus.INPUT)
        assert len(ended.err.splitlines()) == 1
