"""A model's folder is a stranger's: whatever is in it, one sentence, soon, and exit code 4."""

import json
import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from attnviz.errors import ExitStatus, ModelError
from attnviz.models.folder.files import (
    check_asked,
    check_settings,
    checked_header,
    parse_json,
    read_words,
    weight_shapes,
)
from tests.architectures import edit_config, save_over_bytes
from tests.conftest import Run

TEXT = "a fluffy blue creature"
Change = Callable[[Path], None]


def config(**settings: Any) -> Change:
    return lambda folder: edit_config(folder, **settings)


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


def card(**parts: Any) -> Change:
    whole = {"schema": 1, "name": "a", "description": "b", "bos": True, "heads": [], "figures": []}
    return written("card.json", json.dumps({**whole, **parts}))


def mapped(length: int) -> str:
    """SentencePiece's map of characters, with an empty trie and one text of this length."""
    return b64encode(struct.pack("<I", 4) + bytes(4) + b"x" * length + b"\0").decode()


NAMED = {"behaviour": "a", "head": "L0H1", "title": "b"}
FIGURE = {"behaviour": "a", "measure": "b", "held_out": 0.5, "bar": 0.4, "n": 3}
READ_HEAD = {"head": "L0H1", "before": 0.1, "added": 0.9, "after": 0.8}
READOUT = {
    "name": "colour", "behaviour": "adjectives", "classes": ["blue", "none"], "n": 200,
    "chance": 0.5, "token": 0.5, "heads": [READ_HEAD],
}  # fmt: skip
TEMPLATE = {"id": "<|endoftext|>", "ids": [0] * 100_000, "tokens": ["<|endoftext|>"] * 100_000}
CASES: dict[str, Change] = {
    **{
        f"{name} = {value!r}"[:60]: config(**{name: value})
        for name, value in [
            ("n_layer", 10**9), ("n_layer", 10**18), ("n_layer", 0), ("n_layer", -1),
            ("n_layer", True), ("n_layer", "2"), ("n_layer", 2.0), ("n_layer", [1] * 5),
            ("n_head", 10**9), ("n_head", 0), ("n_embd", 10**15), ("n_embd", 21.5),
            ("vocab_size", 10**12), ("vocab_size", "257"), ("n_positions", 10**12),
            ("n_inner", 10**12), ("n_inner", -1), ("n_inner", True), ("n_inner", 0.5),
            ("layer_norm_epsilon", "small"),
            ("model_type", 7), ("model_type", ["gpt2"]), ("num_labels", 10**9),
            ("n_embd", 3 * 715827882), ("num_hidden_groups", 10**9), ("inner_group_num", 10**9),
            ("attention_types", [[["global"], 10**9]]), ("layer_norm_epsilon", -1.0),
            ("layer_norm_epsilon", float("inf")), ("id2label", dict.fromkeys(range(300_000), "a")),
            ("lists", [[]] * 300_000),
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
    "words of any length": model(
        type="WordPiece", vocab={"a": 0}, unk_token="a", max_input_chars_per_word=10**9,
        continuing_subword_prefix="##",
    ),
    "a map that puts a megabyte for a letter": part(
        "normalizer", type="Precompiled", precompiled_charsmap=mapped(1 << 20)
    ),
    "added tokens of sixteen million letters": tokenizer(
        lambda c: c["added_tokens"].extend(
            {**c["added_tokens"][0], "id": 1 + n % 200, "content": f"{n:01000}"}
            for n in range(4000)
        )
    ),
    "added tokens that a normalizer makes long": tokenizer(
        lambda c: c.update(
            normalizer={"type": "Replace", "pattern": {"Regex": "[0-9]"}, "content": "x" * 32},
            added_tokens=[
                {**c["added_tokens"][0], "id": n % 200, "content": f"{n:0900}"} for n in range(200)
            ],
        )
    ),
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
    **{
        f"a card whose {name} is {value!r}"[:60]: card(**{name: value})
        for name, value in [
            ("bos", "no"), ("bos", 1), ("name", 7), ("name", "x" * 5000), ("loss_limit", "nan"),
            ("loss_limit", True), ("heads", {}), ("heads", [NAMED] * 2000), ("heads", ["L0H0"]),
            ("heads", [{**NAMED, "head": "L\u0663H1"}]), ("heads", [{**NAMED, "head": "L-0H1"}]),
            ("heads", [{**NAMED, "title": "x" * 5000}]), ("heads", [{**NAMED, "title": None}]),
            ("figures", [{**FIGURE, "held_out": "inf"}]), ("figures", [{**FIGURE, "bar": "nan"}]),
            ("chance_cosine", 1.5), ("chance_cosine", "high"), ("chance_cosine", True),
            ("readouts", [{**READOUT, "classes": ["a", "a"]}]), ("readouts", {}),
            ("readouts", [{**READOUT, "classes": ["a"]}]), ("readouts", [READOUT] * 2000),
            ("readouts", [{**READOUT, "classes": ["a", "x" * 5000]}]),
            ("readouts", [{**READOUT, "chance": 1.1}]), ("readouts", [{**READOUT, "n": -1}]),
            ("readouts", [{**READOUT, "heads": [{**READ_HEAD, "head": "L9H9"}]}]),
            ("readouts", [{**READOUT, "heads": [{**READ_HEAD, "after": -0.1}]}]),
            ("figures", [{**FIGURE, "n": -5}]), ("figures", [{**FIGURE, "n": 10**19}]),
        ]
    },
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


@pytest.mark.parametrize("bos", [50256, -1])
@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_a_beginning_token_outside_the_vocabulary_is_none(
    run: Run, gpt2_copy: Path, bos: int, engine: str
) -> None:
    config(bos_token_id=bos)(gpt2_copy)
    asked = ("show", TEXT, "--model", str(gpt2_copy), "--engine", engine)
    assert run(*asked).status is ExitStatus.OK
    assert "no beginning token" in run(*asked, "--bos").err


ODD = [
    "1000000000000000019884624838656", "9" * 4300, "1e999", "-1e999", "NaN", "Infinity",
    "[0.0, Infinity]", "-3", "0.5", "[[[65000, -1e400]]]", "null", '"-7"', '{"a": 1e30}',
]  # fmt: skip
"""What may stand for a number that sizes nothing."""


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "card.json"])
def test_a_number_that_sizes_nothing_passes(run: Run, gpt2_copy: Path, name: str) -> None:
    path = gpt2_copy / name
    before = path.read_text().strip() if path.is_file() else '{"schema": 7}'
    odd = ", ".join(f'"model_max_length_{n}": {number}' for n, number in enumerate(ODD))
    path.write_text(f'{{"bad_words_ids": [[65000]], {odd}, {before[1:]}')
    (gpt2_copy / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    (gpt2_copy / "chat.json").write_text('[{"role": "user", "content": "hi"}]')
    where = ("--model", str(gpt2_copy))
    assert run("show", TEXT, *where).status is ExitStatus.OK
    assert run("generate", "--chat", str(gpt2_copy / "chat.json"), *where).status is ExitStatus.OK


def test_a_card_with_every_part_passes(run: Run, gpt2_copy: Path) -> None:
    parts = {"loss_limit": 0.5, "chance_cosine": 0.3, "readouts": [READOUT]}
    card(heads=[NAMED], figures=[FIGURE], **parts)(gpt2_copy)
    assert run("show", TEXT, "--model", str(gpt2_copy)).status is ExitStatus.OK


def test_a_tensor_that_repeats_a_few_numbers_holds_no_more(gpt2_copy: Path) -> None:
    torch.save({"a": torch.zeros(1).expand(10**6, 10**6)}, gpt2_copy / "pytorch_model.bin")
    (gpt2_copy / "model.safetensors").unlink()
    assert weight_shapes(gpt2_copy) == {"a": (1,)}


def test_a_list_of_words_without_end_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "words.txt").open("wb") as stream:
        stream.truncate(1 << 31)  # sparse: it takes no room
    with pytest.raises(ModelError, match="more than"):
        read_words(tmp_path)


def test_masks_of_gigabytes_are_not_made(run: Run, tmp_path: Path) -> None:
    sizes = transformers.GPTJConfig(
        n_embd=16, n_layer=1, n_head=2, rotary_dim=4, n_positions=64, vocab_size=257
    )
    save_over_bytes(tmp_path, transformers.GPTJForCausalLM(sizes))
    assert run("show", TEXT, "--model", str(tmp_path)).status is ExitStatus.OK
    config(n_positions=20_000_000)(tmp_path)
    ended = run("show", TEXT, "--model", str(tmp_path))
    assert ended.status is ExitStatus.MODEL
    assert "beside the weights" in ended.err


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
    ("regex", "text"),
    [
        ("(a+)+$", "a" * 40 + "!"),
        (r"(\w+\s?)*$", "a" * 40 + "!"),
        ("a?" * 30 + "a" * 30, "a" * 30),
        (r"(a|aa)+\1$", "a" * 60 + "!"),
    ],
)
def test_an_expression_that_would_search_without_end_is_given_up(
    run: Run, gpt2_copy: Path, regex: str, text: str
) -> None:
    split = {"pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    part("pre_tokenizer", type="Split", **split)(gpt2_copy)
    ended = run("tokens", text, "--model", str(gpt2_copy))
    assert ended.status is ExitStatus.MODEL, ended.err
    assert ended.err.count("\n") == 1


ODD_SETTINGS = [
    *((name, True) for name in ("architectures", "num_attention_heads", "rope_parameters")),
    *(("architectures", value) for value in (1e308, 10**400, -1, [1])),
    ("hidden_size", 1e308), ("layer_types", 7), ("num_hidden_layers", float("inf")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), ODD_SETTINGS)
def test_a_setting_of_another_kind_is_one_sentence_on_any_architecture(
    run: Run, tmp_path: Path, name: str, value: object
) -> None:
    sizes = {"vocab_size": 257, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.LlamaConfig(**sizes, num_key_value_heads=2, num_hidden_layers=1)
    save_over_bytes(tmp_path, transformers.LlamaForCausalLM(config))
    edit_config(tmp_path, **{name: value})
    ended = run("show", TEXT, "--model", str(tmp_path))
    assert ended.status is ExitStatus.MODEL, ended.err
    assert ended.err.count("\n") == 1


UNUSUAL: dict[str, dict[str, Any]] = {
    "30,000 labels": {
        "id2label": {str(n): f"LABEL_{n}" for n in range(30_000)},
        "label2id": {f"LABEL_{n}": n for n in range(30_000)},
    },
    "sizes that its architecture does not read": {
        "n_ctx": 0, "d_head": 0, "n_inner": -1, "num_kv_heads": 0, "num_experts": 16_384,
        "d_model": "large", "encoder_layers": -1,
    },
    "a part with sizes of its own": {"vision_config": {"num_hidden_layers": 0, "patch_size": 14.0}},
    "ids that are none, or several": {"pad_token_id": -1, "eos_token_id": [1, 2]},
}  # fmt: skip


@pytest.mark.parametrize("settings", UNUSUAL.values(), ids=UNUSUAL)
def test_a_setting_that_makes_nothing_large_passes(
    run: Run, tmp_path: Path, settings: dict[str, Any]
) -> None:
    sizes = {"vocab_size": 257, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.LlamaConfig(**sizes, num_key_value_heads=2, num_hidden_layers=1)
    save_over_bytes(tmp_path, transformers.LlamaForCausalLM(config))
    edit_config(tmp_path, **settings)
    assert run("show", TEXT, "--model", str(tmp_path)).status is ExitStatus.OK


def test_the_settings_that_transformers_gives_every_architecture_pass() -> None:
    for name in transformers.CONFIG_MAPPING:
        try:
            made = transformers.CONFIG_MAPPING[name]()
        except Exception:  # two have no settings of their own to begin with
            continue
        check_settings(parse_json(made.to_json_string(use_diff=False).encode()), Path(name))
