"""A model's folder is a stranger's: whatever is in it, one sentence, soon, and exit code 4."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnviz.errors import ExitStatus
from attnviz.models.folder.gate import check_asked, checked_header
from attnviz.models.folder.tokenizer_gate import is_costly
from tests.conftest import Run

TEXT = "a fluffy blue creature"
Change = Callable[[Path], None]


def config(**settings: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))

    return change


def tokenizer(change: Callable[[dict[str, Any]], object]) -> Change:
    def changed(folder: Path) -> None:
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return changed


def model(**parts: Any) -> Change:
    return tokenizer(lambda content: content["model"].update(parts))


def part(name: str, **step: Any) -> Change:
    return tokenizer(lambda content: content.update({name: step}))


def written(name: str, content: str | bytes) -> Change:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data) and None


def header(change: Callable[[dict[str, Any]], object]) -> Change:
    def changed(folder: Path) -> None:
        path = folder / "model.safetensors"
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        content = json.loads(data[8 : 8 + length])
        change(content)
        new = json.dumps(content).encode()
        path.write_bytes(struct.pack("<Q", len(new)) + new + data[8 + length :])

    return changed


def first(content: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = next(v for k, v in content.items() if k != "__metadata__")
    return entry


TEMPLATE = {"id": "<|endoftext|>", "ids": [0] * 100_000, "tokens": ["<|endoftext|>"] * 100_000}
CASES: dict[str, Change] = {
    **{
        f"{name} = {value!r}"[:60]: config(**{name: value})
        for name, value in [
            ("n_layer", 10**9), ("n_layer", 10**18), ("n_layer", 0), ("n_layer", -1),
            ("n_layer", True), ("n_layer", "2"), ("n_layer", 2.0), ("n_layer", [1] * 5),
            ("n_head", 10**9), ("n_head", 0), ("n_embd", 10**15), ("n_embd", 21.5),
            ("vocab_size", 10**12), ("vocab_size", "257"), ("n_positions", 10**12),
            ("n_inner", 10**12), ("n_inner", -1), ("layer_norm_epsilon", "small"),
            ("model_type", 7), ("model_type", ["gpt2"]), ("num_labels", 10**9),
            ("bos_token_id", 10**6), ("bos_token_id", "x"),
        ]
    },
    "config with NaN": written("config.json", '{"model_type": "gpt2", "n_layer": NaN}'),
    "config with 5,000 digits": written("config.json", '{"n_layer": ' + "9" * 5000 + "}"),
    "config nested too deep": written("config.json", "[" * 100_000),
    "config with half a character": written("config.json", '{"model_type": "\\ud800"}'),
    "config of 20 MB": written("config.json", '{"a": "' + "x" * 20_000_000 + '"}'),
    "config as a list": written("config.json", "[]"),
    "config empty": written("config.json", ""),
    "header longer than the file": written("model.safetensors", struct.pack("<Q", 1 << 40)),
    "header no object": written("model.safetensors", struct.pack("<Q", 2) + b"[]"),
    "weights empty": written("model.safetensors", b""),
    "offsets that lie": header(lambda c: first(c).update(data_offsets=[0, 10**15])),
    "offsets backwards": header(lambda c: first(c).update(data_offsets=[8, 0])),
    "offsets as text": header(lambda c: first(c).update(data_offsets=["0", "8"])),
    "one offset": header(lambda c: first(c).update(data_offsets=[0])),
    "a shape that lies": header(lambda c: first(c).update(shape=[10**9, 10**9])),
    "a negative shape": header(lambda c: first(c).update(shape=[-1, -4])),
    "an unknown type": header(lambda c: first(c).update(dtype="F99")),
    "no shape": header(lambda c: first(c).pop("shape")),
    "tensors that overlap": header(lambda c: c.update(more=dict(first(c)))),
    "tokenizer empty": written("tokenizer.json", ""),
    "tokenizer a list": written("tokenizer.json", "[]"),
    "tokenizer nested too deep": written("tokenizer.json", "[" * 100_000),
    "no vocabulary": tokenizer(lambda c: c["model"].pop("vocab")),
    "an empty vocabulary": model(vocab={}),
    "ids as text": model(vocab={"a": "0"}),
    "ids below 0": model(vocab={"a": -1}),
    "huge ids": model(vocab={"a": 1 << 40}),
    "words without their unknown one": model(type="WordLevel", vocab={"a": 0}, unk_token="[UNK]"),
    "pieces without their unknown one": model(type="WordPiece", vocab={"a": 0}, unk_token="[UNK]"),
    "scores without an unknown one": model(type="Unigram", vocab=[["a", 0.0]], unk_id=7),
    "scores that are none": model(type="Unigram", vocab=[["a"]], unk_id=0),
    "merges of nothing": model(merges=[["", "a"]]),
    "merges of three": model(merges=[["a", "b", "c"]]),
    "merges of unknown tokens": model(merges=[["nosuch", "token"]]),
    "merges as numbers": model(merges=[[1, 2]]),
    "a normalizer that explodes": part(
        "normalizer",
        type="Sequence",
        normalizers=[
            {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60} for _ in range(4)
        ],
    ),
    "a thousand steps": part("normalizer", type="Sequence", normalizers=[{"type": "NFC"}] * 1000),
    "a normalizer that deletes everything": part(
        "normalizer", type="Replace", pattern={"Regex": "."}, content=""
    ),
    "an exponential expression": part(
        "pre_tokenizer",
        type="Split", pattern={"Regex": "(a+)+$"}, behavior="Isolated", invert=False,
    ),
    "no expression": part(
        "pre_tokenizer",
        type="Split", pattern={"Regex": "("}, behavior="Isolated", invert=False,
    ),
    "an unknown step": part("normalizer", type="NoSuch"),
    "100,000 tokens around a text": part(
        "post_processor",
        type="TemplateProcessing",
        single=[
            {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        special_tokens={"<|endoftext|>": TEMPLATE},
    ),
    "an added token that is empty": tokenizer(
        lambda c: c["added_tokens"].append({**c["added_tokens"][0], "id": 5, "content": ""})
    ),
    "a token beyond the vocabulary": tokenizer(
        lambda c: c["added_tokens"].append(
            {**c["added_tokens"][0], "id": 9999, "content": "fluffy", "special": False}
        )
    ),
    "a card with NaN": written("card.json", '{"schema": 1, "loss_limit": NaN}'),
    "a card with an infinity": written("card.json", '{"schema": 1, "loss_limit": 1e999}'),
    "a card with half a character": written("card.json", '{"schema": 1, "name": "\\udc00"}'),
    "a card without its parts": written("card.json", '{"schema": 1}'),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_folder_is_a_model_error_in_one_sentence(
    run: Run, gpt2_copy: Path, name: str
) -> None:
    CASES[name](gpt2_copy)
    ended = run("show", TEXT, "--model", str(gpt2_copy))
    assert ended.status in (ExitStatus.MODEL, ExitStatus.INPUT), ended.err
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 700
    assert "Traceback" not in ended.err


def test_an_infinite_setting_that_sizes_nothing_passes(run: Run, gpt2_copy: Path) -> None:
    config(time_step_limit=[0.0, float("inf")])(gpt2_copy)
    assert run("show", TEXT, "--model", str(gpt2_copy)).status is ExitStatus.OK


def test_what_a_compiled_library_writes_by_itself_is_dropped(
    capfd: pytest.CaptureFixture[str], run: Run, gpt2_copy: Path
) -> None:
    part("normalizer", type="Precompiled", precompiled_charsmap="AAAA")(gpt2_copy)
    ended = run("show", TEXT, "--model", str(gpt2_copy))
    assert ended.status is ExitStatus.MODEL, ended.err
    assert capfd.readouterr().err == ""


def test_the_tensors_of_a_header_fill_the_file() -> None:
    entry = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    assert checked_header({"a": entry, "__metadata__": {"format": "pt"}}, 24) == {"a": (2, 3)}
    with pytest.raises(ValueError, match="another size"):
        checked_header({"a": entry}, 25)
    with pytest.raises(ValueError, match="between them"):
        checked_header({"a": {**entry, "data_offsets": [1, 25]}}, 25)


def test_a_model_asks_for_no_more_than_its_files_hold() -> None:
    check_asked(3_000_000, 2_000_000, Path())
    with pytest.raises(Exception, match="asks for 9,000,000 parameters"):
        check_asked(9_000_000, 2_000_000, Path())


@pytest.mark.parametrize(
    "regex",
    [
        "(a+)+",
        "(a|b)*c",
        "((a{2,})x)+",
        "(?:a*b)*",
        "(x(a+))*",
        "(a+){50}",
        r"(\w+\s?)*$",
        "a*a*a*a*a*b",
        "a?" * 20 + "a" * 20,
        r"(.*)\1x",
        r"(?<n>a\g<n>?b)",
    ],
)
def test_an_expression_that_can_take_very_long_is_seen(regex: str) -> None:
    assert is_costly(regex)


@pytest.mark.parametrize(
    "regex",
    [
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]*[\p{Ll}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}",
        r"\s+\Z", r"[(+)]+", r"\(+\)+", r"(ab)+", r"(?:ab){1,3}",
    ],
)  # fmt: skip
def test_the_expressions_of_real_tokenizers_pass(regex: str) -> None:
    assert not is_costly(regex)
