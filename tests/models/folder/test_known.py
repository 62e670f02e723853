"""Folders whose code transformers has not: the sentence says so, and its advice can help."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Regex, decoders

import attnviz
from attnviz.__main__ import Ended
from attnviz.errors import ExitStatus, ModelError
from attnviz.models.catalog import Source, load
from attnviz.models.catalog import tokenizer_of as tokenizer_of_model
from attnviz.models.folder.files import foreign
from attnviz.models.folder.tokenizer import CONVERT
from attnviz.models.tokenizer import AS_SAVED
from tests.architectures import save_over_bytes
from tests.conftest import Run, bytes_tokenizer
from tests.ordinary.vocabularies import tokenizer_of, write_texts

TEXT = "a fluffy blue creature"
CODE = {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
SIZES = {
    "vocab_size": 257, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 2,
}  # fmt: skip
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SIZES}


def folder(at: Path, **settings: Any) -> Path:
    """A tiny Llama, whose config.json has these settings; None removes one."""
    at = at / ("a very long name of a folder " * 5)
    config = transformers.LlamaConfig(**SIZES)
    save_over_bytes(at, transformers.LlamaForCausalLM(config))
    held = {name: value for name, value in {**LLAMA, **settings}.items() if value is not None}
    (at / "config.json").write_text(json.dumps(held))
    return at


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "own", "auto_map": CODE}, "its own code, which attnviz never runs"),
        ({"model_type": None, "auto_map": CODE}, "its own code, which attnviz never runs"),
        ({"model_type": "own"}, f"transformers {transformers.__version__} has no model type 'own'"),
        ({"model_type": 7}, "has no model type 7"),
        ({"model_type": None}, "has no model_type"),
        ({"hidden_act": ["gelu"]}, "does not take the config.json"),
        ({"rope_theta": "large"}, "does not take the config.json"),
    ],
)
def test_a_config_that_transformers_has_no_code_for_is_not_called_damaged(
    run: Run, tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    ended = run("show", TEXT, "--model", str(folder(tmp_path, **settings)))
    assert ended.status is ExitStatus.MODEL
    assert said in ended.err
    assert "damaged" not in ended.err
    assert "download" not in ended.err


@pytest.mark.parametrize("command", [("show",), ("heads",), ("generate", "--max-new-tokens", "2")])
def test_code_that_is_left_over_beside_transformers_own_is_noted(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    ended = run(*command, TEXT, "--model", str(folder(tmp_path, auto_map=CODE)))
    assert ended.status is ExitStatus.OK, ended.err
    assert ended.err.count("names its own code, and transformers' llama was run instead") == 1


def test_a_model_in_python_says_that_code_of_its_own_was_not_run(tmp_path: Path) -> None:
    shown = attnviz.load_model(str(folder(tmp_path, auto_map=CODE))).show(TEXT)
    assert any("its own code" in note for note in shown.notes)


@pytest.mark.parametrize("architectures", [None, [], ["NoSuchForCausalLM"], ["GPT2LMHeadModel"]])
def test_weights_of_a_language_model_write_text_whatever_config_json_names(
    tmp_path: Path, architectures: Any
) -> None:
    path = folder(tmp_path, architectures=architectures)
    load(Source(str(path))).require("generate")
    for name in ("model.safetensors", "config.json"):
        (path / name).unlink()
    transformers.LlamaModel(transformers.LlamaConfig(**SIZES)).save_pretrained(path)
    settings = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**settings, "architectures": architectures}))
    with pytest.raises(Exception, match="does not write text"):
        load(Source(str(path))).require("generate")


@pytest.mark.parametrize(
    "config",
    [
        transformers.MambaConfig(vocab_size=257, hidden_size=16, num_hidden_layers=1, state_size=4),
        transformers.LlamaConfig(**SIZES, rms_norm_eps=2.0),
    ],
    ids=["mamba", "an epsilon of 2"],
)
def test_what_is_wrong_with_a_model_in_memory_is_said_without_a_path(config: Any) -> None:
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())
    with pytest.raises(ModelError) as raised:
        attnviz.load_model(model, tokenizer)
    assert "/" not in raised.value.wrong


VOCABULARIES = {
    "bert": ("words", {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}),
    "roberta": ("bytes", {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}),
    "qwen2": ("gpt-4 bytes", {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}),
}


@pytest.mark.parametrize("model_type", VOCABULARIES)
def test_a_vocabulary_without_tokenizer_json_gives_the_tokens_of_transformers(
    tmp_path: Path, model_type: str
) -> None:
    kind, special = VOCABULARIES[model_type]
    write_texts(tokenizer_of(kind, special, ""), tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    ours = tokenizer_of_model(Source(str(tmp_path)))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The cat sat, 2024!", " two  spaces", "café"):
        tokens = ours.encode(text, bos=ours.bos, special=False)
        assert [token.id for token in tokens] == theirs(text).input_ids


@pytest.mark.parametrize("held", ["tokenizer.model", "source.spm"])
@pytest.mark.parametrize(
    "name", ["spm", "a $(touch ran) `touch ran`", 'it\'s "so" \\ ; # é', "a long name " * 12]
)
def test_a_sentencepiece_file_alone_is_told_the_whole_command_that_converts_it(
    run: Run, tmp_path: Path, name: str, held: str
) -> None:
    path = tmp_path / name
    path.mkdir()
    (path / held).write_bytes(b"pieces")
    (path / "config.json").write_text(json.dumps(LLAMA))
    said = run("tokens", TEXT, "--model", str(path)).err
    typed = re.search(r"write it with: (pip install .*) \(once\)\.$", said)
    assert typed is not None, said
    run_as = 'pip() { :; }; python() { printf "%s\\0" "$@"; }; '
    given = subprocess.run(
        ["bash", "-c", run_as + typed[1]], capture_output=True, text=True, cwd=tmp_path, check=True
    ).stdout.split("\0")
    assert given == ["-c", CONVERT, str(path), ""]
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_the_command_that_converts_a_folder_writes_its_tokenizer(tmp_path: Path) -> None:
    kind, special = VOCABULARIES["qwen2"]
    write_texts(tokenizer_of(kind, special, ""), tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')
    given = [sys.executable, "-c", CONVERT, str(tmp_path)]
    subprocess.run(given, check=True, capture_output=True)
    assert (tmp_path / "tokenizer.json").is_file()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"tokenizer_class": "NoSuchTokenizer", "auto_map": CODE}, None),
        ({"bos_token": 5}, "transformers makes none of this folder"),
        (
            {"extra_special_tokens": {"x_token": "<x>"}},
            "transformers adds tokens that the model does not know",
        ),
    ],
)
def test_a_tokenizer_that_is_not_that_of_transformers_is_told(
    run: Run, tmp_path: Path, broken: Any, reason: str | None
) -> None:
    path = folder(tmp_path)
    (path / "tokenizer_config.json").write_text(json.dumps(broken))
    for command in ("show", "tokens", "heads"):
        ended = run(command, TEXT, "--model", str(path))
        assert ended.status is ExitStatus.OK, ended.err
        assert ended.err.count("is read from tokenizer.json as it is") == (reason is not None)
        assert (reason or "") in ended.err
    notes = attnviz.show(TEXT, str(path)).notes
    assert [note for note in notes if "as it is" in note and str(reason) in note] == (
        [AS_SAVED.format(reason)] if reason else []
    )


def test_settings_of_a_tokenizer_name_no_other_file(tmp_path: Path) -> None:
    path = folder(tmp_path)
    elsewhere = {"tokenizer_file": "/dev/zero", "vocab_file": "/dev/zero", "auto_map": CODE}
    (path / "tokenizer_config.json").write_text(json.dumps(elsewhere))
    assert tokenizer_of_model(Source(str(path))).ids("ab")


def test_a_decoder_that_panics_is_told_in_one_sentence(
    capfd: pytest.CaptureFixture[str], run: Run, gpt2_copy: Path
) -> None:
    tokenizer = bytes_tokenizer()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(Regex("."), "a"), decoders.Strip("a", 0, 5)]
    )
    tokenizer.save(str(gpt2_copy / "tokenizer.json"))
    for command in ("predict", "generate"):
        ended = run(command, TEXT, "--model", str(gpt2_copy))
        assert ended.status is ExitStatus.MODEL
        assert "index" not in ended.err
    assert "panicked" not in capfd.readouterr().err


def test_a_signal_while_a_model_is_read_is_not_taken_for_a_damaged_model(tmp_path: Path) -> None:
    with pytest.raises(Ended), foreign(tmp_path):
        raise Ended(signal.SIGTERM)


BASE = "someone/llama-7b"


@pytest.mark.parametrize("base", [BASE, None, 7, "a\nb" * 200])
def test_a_folder_that_holds_an_adapter_alone_says_for_which_model(
    run: Run, tmp_path: Path, base: Any
) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    ended = run("show", TEXT, "--model", str(tmp_path))
    assert ended.status is ExitStatus.MODEL
    assert "holds only a PEFT adapter" in ended.err
    assert "attnviz.load_model(model, tokenizer)" in ended.err
    assert (f"for {BASE!r}" in ended.err) == (base == BASE)
    assert len(ended.err) < 500


def test_a_folder_in_the_format_of_its_authors_says_how_to_convert_it(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "params.json").write_text('{"dim": 64, "n_layers": 2}')
    ended = run("show", TEXT, "--model", str(tmp_path))
    assert ended.status is ExitStatus.MODEL
    assert "in its authors' format" in ended.err
    settings = {"num_hidden_layers": 2, "head_dim": 64, "swiglu_limit": 7.0}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert "no model_type" in run("show", TEXT, "--model", str(tmp_path)).err
    assert "authors' format" in run("show", TEXT, "--model", str(tmp_path)).err


def test_a_model_of_a_picture_and_a_text_asks_for_the_picture(run: Run, tmp_path: Path) -> None:
    sizes = {
        "vocab_size": 257, "hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "max_position_embeddings": 64, "image_size": 8, "patch_size": 4,
    }  # fmt: skip
    save_over_bytes(tmp_path, transformers.ViltModel(transformers.ViltConfig(**sizes)))
    ended = run("show", TEXT, "--model", str(tmp_path))
    assert ended.status is ExitStatus.USAGE
    assert "reads an image beside every text; give one with --image" in ended.err
    assert not any(word in ended.err for word in ("longer", "cannot run"))


@pytest.mark.parametrize(
    ("settings", "piece", "said"),
    [
        ({"model_type": "marian"}, "source.spm", "is a slow one"),
        ({"model_type": "m2m_100"}, "sentencepiece.bpe.model", "is a slow one"),
        ({"model_type": "llama"}, "tokenizer.model", "pip install sentencepiece"),
        ({"model_type": "t5"}, "spiece.model", "pip install sentencepiece"),
    ],
)
def test_pieces_are_to_be_converted_only_where_transformers_can(
    run: Run, tmp_path: Path, settings: dict[str, Any], piece: str, said: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / piece).write_bytes(b"pieces")
    if "slow" in said:
        (tmp_path / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}')
    ended = run("tokens", TEXT, "--model", str(tmp_path))
    assert ended.status is ExitStatus.MODEL
    assert said in ended.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tiny.gguf", "is damaged or incomplete"),
        ("model.safetensors", "is damaged or incomplete"),
        ("notes.txt", "is a file, but a model is a folder or a GGUF file"),
    ],
)
def test_a_file_in_the_place_of_a_folder_is_called_what_it_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    (tmp_path / name).write_bytes(b"" if name == "notes.txt" else b"GGUF")
    monkeypatch.chdir(tmp_path)
    for named in (name, str(tmp_path / name)):
        ended = run("show", TEXT, "--model", named)
        assert (ended.status, ended.err.count("\n")) == (ExitStatus.MODEL, 1)
        assert said in ended.err


def test_a_part_of_a_sentence_transformers_model_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": false}')
    ended = run("show", TEXT, "--model", str(tmp_path / "1_Pooling"))
    assert "is a part of a sentence-transformers model" in ended.err


@pytest.mark.parametrize(
    ("name", "does"),
    [("detr", "detects objects"), ("mask2former", "of a kind that"), ("wavlm", "of a kind that")],
)
def test_a_model_of_another_kind_is_called_what_it_does(
    run: Run, tmp_path: Path, name: str, does: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": name}))
    ended = run("show", "--image", "sample:shapes-1", "--model", str(tmp_path))
    assert (ended.status, ended.err.count("\n")) == (ExitStatus.MODEL, 1)
    assert does in ended.err


@pytest.mark.parametrize("name", ["_attn_implementation", "attn_implementation"])
@pytest.mark.parametrize(
    ("asked", "noted"),
    [("flash_attention_2", True), ("kernels-community/flash-attn", True), ("sdpa", False)],
)
def test_an_attention_function_that_a_config_asks_for_is_left_to_transformers_with_a_note(
    run: Run, tmp_path: Path, name: str, asked: str, noted: bool
) -> None:
    at = folder(tmp_path, **{name: asked})
    ended = run("show", TEXT, "--model", str(at), "-f", "jsonl")
    assert ended.status is ExitStatus.OK, ended.err
    assert ended.err == (f"note: its config.json asks for {asked}; it runs with sdpa\n" * noted)
