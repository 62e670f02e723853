"""A saved capture comes back bit for bit, and nothing else is taken for one."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from attnviz.errors import InputError
from attnviz.inputs.captures import load_capture, npz_chunks
from attnviz.records.capture import Capture, LayerPattern, TextLoss
from attnviz.records.heads import Head, NamedHead
from attnviz.records.tokens import Token
from attnviz.records.transforms import KeysDropped, Merged, NormBased, Scores, Transform
from tests.conftest import Run
from tests.factories import make_capture, make_tokens

Meta = dict[str, Any]


def saved(capture: Capture, path: Path) -> Path:
    path.write_bytes(b"".join(npz_chunks(capture)))
    return path


def full_capture() -> Capture:
    """A capture in which no field has its default."""
    capture = make_capture("a 楚 \x1b[0m\n", heads_per_layer=(2, 0, 3), bos=True)
    tokens = (*capture.query_tokens[:-1], replace(capture.query_tokens[-1], part=(2, 3)))
    rng = np.random.default_rng(5)
    return replace(
        capture,
        query_tokens=tokens,
        key_tokens=tokens,
        layers=(capture.layers[0], capture.layers[2]),
        model=replace(capture.model, revision="abc", dtype="bfloat16", engine="transformers"),
        kind="encoder",
        causal=False,
        left_out=(3, 5),
        versions={"numpy": "2.4", "attnviz": "0.1"},
        transforms=(Merged("words"), KeysDropped(("BOS",), 0.25, ("a",))),
        extras={
            "values/../x": rng.random((2, 3, 5), np.float32),
            "é": np.array([-0.0, np.inf], np.float32),
        },
        named_heads=(NamedHead("adjectives", Head(2, 1), "nouns attend …"),),
        loss=TextLoss(0.1 + 0.2, 7, 2.5),
    ).only((Head(0, 1), Head(2, 0), Head(2, 2)))


def assert_same(found: Capture, expected: Capture) -> None:
    apart = ("layers", "extras")  # arrays, compared below
    plain = [{k: v for k, v in vars(c).items() if k not in apart} for c in (found, expected)]
    assert plain[0] == plain[1]
    assert [(x.layer, x.heads) for x in found.layers] == [
        (x.layer, x.heads) for x in expected.layers
    ]
    assert list(found.extras) == list(expected.extras)
    arrays = zip(
        [*(x.weights for x in found.layers), *found.extras.values()],
        [*(x.weights for x in expected.layers), *expected.extras.values()],
        strict=True,
    )
    for one, other in arrays:
        assert (one.dtype, one.shape) == (np.dtype(np.float32), other.shape)
        assert one.tobytes() == other.tobytes()


def test_everything_in_a_capture_comes_back(tmp_path: Path) -> None:
    capture = full_capture()
    assert_same(load_capture(saved(capture, tmp_path / "c.npz")), capture)


def test_the_space_of_a_token_comes_back(tmp_path: Path) -> None:
    capture = full_capture()
    tokens = tuple(replace(token, spaced=token.index == 1) for token in capture.query_tokens)
    spaced = replace(capture, query_tokens=tokens, key_tokens=tokens)
    assert_same(load_capture(saved(spaced, tmp_path / "c.npz")), spaced)


def test_cross_attention_comes_back_with_both_lists_of_tokens(tmp_path: Path) -> None:
    source, keys = make_tokens("le chat")
    target, queries = make_tokens("the cat sat down")  # longer than the source text
    weights = np.full((1, 4, 2), 0.5, np.float32)
    capture = Capture(
        source, queries, keys, (LayerPattern(1, (0,), weights),), make_capture().model,
        bos=False, kind="cross", causal=False, target=target,
    )  # fmt: skip
    assert_same(load_capture(saved(capture, tmp_path / "c.npz")), capture)


def test_a_query_outside_of_the_target_is_told(tmp_path: Path) -> None:
    source, keys = make_tokens("le chat")
    _, queries = make_tokens("the cat sat down")
    weights = np.full((1, 4, 2), 0.5, np.float32)
    capture = Capture(
        source, queries, keys, (LayerPattern(1, (0,), weights),), make_capture().model,
        bos=False, kind="cross", causal=False, target="the",
    )  # fmt: skip
    with pytest.raises(InputError, match="a token's place in the text"):
        load_capture(saved(capture, tmp_path / "c.npz"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(pieces=st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4), data=st.data())
def test_any_text_and_any_weights_come_back(
    tmp_path: Path, pieces: list[str], data: st.DataObject
) -> None:
    shape = (2, len(pieces), len(pieces))
    weights = data.draw(npst.arrays(np.float32, shape, elements=st.floats(0, 1, width=32)))
    capture = make_capture(pieces, heads_per_layer=(2,))
    capture = replace(capture, layers=(LayerPattern(0, (0, 1), weights),))
    assert_same(load_capture(saved(capture, tmp_path / "c.npz")), capture)


def test_an_array_in_any_memory_order_comes_back(tmp_path: Path) -> None:
    capture = make_capture("a b c")
    swapped = np.asfortranarray(capture.layers[0].weights).astype(">f4")
    other = replace(capture, layers=(LayerPattern(0, (0, 1), swapped), capture.layers[1]))
    assert_same(load_capture(saved(other, tmp_path / "c.npz")), capture)


def test_the_same_capture_gives_the_same_bytes_in_pieces() -> None:
    capture = make_capture(" ".join(["w"] * 600))
    chunks = list(npz_chunks(capture))
    assert b"".join(chunks) == b"".join(npz_chunks(capture))
    assert max(map(len, chunks)) < capture.layers[0].weights.nbytes / 4
    dates = {info.date_time for info in zipfile.ZipFile(io.BytesIO(b"".join(chunks))).infolist()}
    assert dates == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_alone_can_read_it_without_pickle(tmp_path: Path) -> None:
    capture = make_capture()
    with np.load(saved(capture, tmp_path / "c.npz"), allow_pickle=False) as archive:
        assert archive.files == ["meta", "layer_0", "layer_1"]
        assert json.loads(archive["meta"].item())["schema"] == "attnviz-capture/3"
        assert np.array_equal(archive["layer_1"], capture.layers[1].weights)


def rewritten(path: Path, change: Callable[[Meta, dict[str, Any]], None]) -> Path:
    """A capture saved with something changed in its metadata or its arrays."""
    capture = make_capture("a b c", named_heads=(NamedHead("x", Head(0, 1), "x"),))
    saved(replace(capture, loss=TextLoss(2.0, 3, 1.5)), path)
    with np.load(path) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    meta = json.loads(arrays.pop("meta").item())
    change(meta, arrays)
    if meta:
        arrays.setdefault("meta", np.array(json.dumps(meta)))
    np.savez(path, **arrays)
    return path


def at(value: object, *names: str | int) -> Callable[[Meta, dict[str, Any]], None]:
    """A change that sets one place in the metadata."""

    def change(meta: Meta, _: dict[str, Any]) -> None:
        place: Any = meta
        for name in names[:-1]:
            place = place[name]
        place[names[-1]] = value

    return change


def array(name: str, value: object) -> Callable[[Meta, dict[str, Any]], None]:
    """A change that sets one array, or leaves it out."""

    def change(meta: Meta, arrays: dict[str, Any]) -> None:
        if name == "meta":
            meta.clear()
        if value is None:
            arrays.pop(name, None)
        else:
            arrays[name] = value

    return change


WEIGHTS = make_capture("a b c").layers[0].weights


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (at("attnviz-capture/4", "schema"), "was saved by a later version .*; upgrade attnviz"),
        (at("other/1", "schema"), "is an .npz file, but not a saved capture; make one with"),
        (at(None, "schema"), "is an .npz file, but not a saved capture"),
        (array("meta", None), "is an .npz file, but not a saved capture"),
        (array("meta", np.zeros(3)), "is an .npz file, but not a saved capture"),
        (array("meta", np.array("no json")), "is damaged"),
        (array("meta", np.array("[1]")), "is an .npz file, but not a saved capture"),
        (array("meta", np.array("[" * 100_000)), "is damaged"),
        (array("layer_0", None), "is damaged: .*layer_0"),
        (array("layer_0", WEIGHTS[:1]), r"is damaged: layer 0 has the shape \(1, 3, 3\)"),
        (array("layer_0", WEIGHTS[:, :2]), "is damaged: layer 0 has the shape"),
        (array("layer_0", WEIGHTS.astype(float)), "is damaged: .* of float64"),
        (array("layer_0", WEIGHTS * np.nan), "is damaged: layer 0 holds .* not numbers"),
        (array("layer_0", WEIGHTS + np.inf), "is damaged: layer 0 holds .* not numbers"),
        (array("layer_0", np.asfortranarray(WEIGHTS)), "is damaged: layer_0 has another layout"),
        (at([], "layers"), "is damaged: the list of layers cannot be right"),
        (at(2, "layers", 0, "layer"), "is damaged: the head L2H0 cannot be right"),
        (at([0, 2], "layers", 0, "heads"), "is damaged: the head L0H2 cannot be right"),
        (at([0, -1], "layers", 0, "heads"), "is damaged: the head L0H-1 cannot be right"),
        (at([1, 1], "layers", 0, "heads"), "is damaged: the heads of layer 0 cannot"),
        (at([], "layers", 0, "heads"), "is damaged: the heads of layer 0 cannot"),
        (at(1, "layers", 0, "layer"), "is damaged: the list of layers cannot"),
        (at([], "query_tokens"), "is damaged: the list of tokens cannot be right"),
        (at(9, "query_tokens", 1, "end"), "is damaged: a token's place in the text"),
        (at(-1, "query_tokens", 1, "start"), "is damaged: a token's place in the text"),
        (at(1, "query_tokens", 2, "end"), "is damaged: a token's place in the text"),
        (at(True, "query_tokens", 1, "id"), "is damaged: id cannot be right"),
        (at([3, 2], "query_tokens", 1, "part"), "is damaged: a token's part"),
        (at([1], "query_tokens", 1, "part"), "is damaged: a token's part"),
        (at(7, "text"), "is damaged: text cannot be right"),
        (at("sideways", "kind"), "is damaged: kind cannot be right"),
        (at("magic", "model", "engine"), "is damaged: engine cannot be right"),
        (at([-1], "model", "heads_per_layer"), "is damaged: heads_per_layer cannot"),
        (at({"numpy": 2}, "versions"), "is damaged: numpy cannot be right"),
        (at([1], "transforms"), "is damaged: transforms cannot be right"),
        (at(["words"], "transforms"), "is damaged: transforms cannot be right"),
        (at([{"kind": "merged"}], "transforms"), "is damaged: transforms cannot be right"),
        (at([{"kind": "merged", "unit": 1}], "transforms"), "is damaged: transforms cannot be"),
        (at(["x"], "extras"), "is damaged: .*extra_0"),
        (at("x", "loss"), "is damaged: loss cannot be right"),
        (at(-1, "loss", "characters"), "is damaged: loss cannot be right"),
        (at("x", "loss", "nats"), "is damaged: nats cannot be right"),
        (at(7, "named_heads", 0, "head"), "is damaged: the head L0H7 cannot be right"),
        (at({}, "model"), "is damaged: name cannot be right"),
        (at(-1, "model", "parameters"), "is damaged: parameters cannot be right"),
        (at(10**29, "model", "parameters"), "is damaged: parameters cannot be right"),
        (at([0, 10**29], "left_out"), "is damaged: left_out cannot be right"),
        (at(-(10**20), "query_tokens", 1, "id"), "is damaged: a token's id cannot be right"),
        (at("x" * 900, "query_tokens", 1, "text"), "is damaged: a token's text cannot be right"),
        (at("\ud800", "model", "name"), "is damaged"),
        (at([{"kind": "scores"}] * 99, "transforms"), "is damaged: transforms cannot be right"),
        (at(["x" * 900], "unknown_words"), "is damaged: unknown_words cannot be right"),
    ],
)
def test_a_file_that_is_no_whole_capture_is_told(
    tmp_path: Path, change: Callable[[Meta, dict[str, Any]], None], sentence: str
) -> None:
    with pytest.raises(InputError, match=f"^'.*c.npz' {sentence}"):
        load_capture(rewritten(tmp_path / "c.npz", change))


def test_a_capture_of_layout_2_is_read(tmp_path: Path) -> None:
    """It had numbers of a rule that is no more, and no loss."""

    def change(meta: Meta, arrays: dict[str, Any]) -> None:
        meta["schema"] = "attnviz-capture/2"
        meta["named_heads"][0]["fit"] = [0.25, -1.0]
        del meta["loss"]

    record = load_capture(rewritten(tmp_path / "c.npz", change))
    assert record.named_heads == (NamedHead("x", Head(0, 1), "x"),)
    assert record.loss is None
    assert not record.strange


def test_the_unchanged_file_of_these_tests_is_a_capture(tmp_path: Path) -> None:
    load_capture(rewritten(tmp_path / "c.npz", lambda meta, arrays: None))


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("a pickle was opened",))

    for name in ("meta", "layer_0"):
        trap = np.array([Trap()], dtype=object)
        with pytest.raises(InputError):
            load_capture(rewritten(tmp_path / "c.npz", array(name, trap)))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is not a saved capture, or is damaged; make one with"),
        (b"a text\n", "is not a saved capture"),
        (b"PK\x03\x04", "is not a saved capture"),
        (b"PK\x05\x06" + bytes(18), "is an .npz file, but not a saved capture"),  # an empty archive
    ],
)
def test_a_file_that_is_no_archive_is_told(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "Notes.npz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"^'.*Notes.npz' {sentence}"):
        load_capture(path)


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    saved(make_capture(), tmp_path / "capture.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(
        InputError, match=r"there is no file .*; the nearest name is '.*capture.npz"
    ):
        load_capture(tmp_path / "captur.npz")
    with pytest.raises(InputError, match=r"'.*folder.npz' is a folder"):
        load_capture(tmp_path / "folder.npz")


@pytest.mark.parametrize("shape", ["(4000000000, 3, 3)", "(-1, 3, 3)", "(3,) * 10**9"])
def test_an_absurd_shape_takes_no_memory(tmp_path: Path, shape: str) -> None:
    path = saved(make_capture("a b c"), tmp_path / "c.npz")
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    entries["layer_0.npy"] = b"\x93NUMPY\x01\x00v\x00" + header.encode() + bytes(72)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="is damaged"):
        load_capture(path)


def test_an_entry_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    path = saved(make_capture("a b c"), tmp_path / "c.npz")
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")  # the directory's first entry: the metadata
    data[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")  # its size unpacked
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is damaged: meta claims to be larger than it can be"):
        load_capture(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data())
def test_any_damage_is_told_or_does_no_harm(tmp_path: Path, data: st.DataObject) -> None:
    capture = make_capture("a b c")
    whole = b"".join(npz_chunks(capture))
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        broken = whole[:place]
    else:
        broken = whole[:place] + data.draw(st.binary(min_size=1, max_size=3)) + whole[place + 1 :]
    path = tmp_path / "c.npz"
    path.write_bytes(broken)
    try:
        found = load_capture(path)
    except InputError:
        return
    assert_same(found, capture)


def test_a_token_is_written_with_all_it_has(tmp_path: Path) -> None:
    token = Token(0, 5, "楚", 0, 1, part=(1, 3))
    capture = replace(make_capture(["楚"]), query_tokens=(token,), key_tokens=(token,))
    assert load_capture(saved(capture, tmp_path / "c.npz")).query_tokens == (token,)


LAYOUT_1 = Path(__file__).parent / "layout_1"


@pytest.mark.parametrize(
    ("name", "transforms", "said"),
    [
        ("plain", (), "9 tokens with BOS"),
        ("scores", (Scores(),), "scores before mask and softmax: scaled dot products of queries"),
        ("merged", (Merged("words"),), "pieces of words merged"),
        ("weighted", (NormBased(),), "norm-based: each weight times the norm of the vector that"),
    ],
)
def test_a_capture_of_layout_1_means_what_it_meant(
    run: Run, name: str, transforms: tuple[Transform, ...], said: str
) -> None:
    """These files were saved when transforms were sentences."""
    path = LAYOUT_1 / f"{name}.npz"
    record = load_capture(path)
    assert record.transforms == transforms
    assert record.signed == (name == "scores")
    shown = " ".join(run("show", str(path), "--head", "L2H3").out.split())
    assert said in shown
