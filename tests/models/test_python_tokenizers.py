"""Tokenizers that transformers has in Python alone: their ids, places, and what is refused."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnviz
from attnviz.errors import ExitStatus, ModelError
from attnviz.models.folder.python_tokenizer import PythonTokenizer
from attnviz.models.folder.tokenizer import PACKAGES, backend_of
from attnviz.models.tokenizer import ALIGNED, TextTokenizer
from tests.conftest import Run
from tests.ordinary.python_tokenizers import PYTHON_ONLY

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
BERT = {**SIZES, "vocab_size": 40, "intermediate_size": 24}
ESM = transformers.EsmConfig(**BERT, pad_token_id=1, mask_token_id=31, max_position_embeddings=40)
TAPAS = transformers.TapasConfig(**BERT)
CTRL = transformers.CTRLConfig(vocab_size=40, n_embd=16, n_layer=1, n_head=2, dff=24)
BYT5 = transformers.T5Config(
    vocab_size=384, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2,
    decoder_start_token_id=0, tokenizer_class="ByT5Tokenizer",
)  # fmt: skip
PHOBERT = transformers.RobertaConfig(**BERT, pad_token_id=1, tokenizer_class="PhobertTokenizer")
MODELS: dict[str, tuple[Any, Any, str]] = {
    "esm": (transformers.EsmForMaskedLM, ESM, "MKTAYIAKQR"),
    "tapas": (transformers.TapasModel, TAPAS, "The cats sat on the Mat."),
    "ctrl": (transformers.CTRLLMHeadModel, CTRL, "the cat sat"),
    "byt5": (transformers.T5ForConditionalGeneration, BYT5, "a 楚é"),
    "phobert": (transformers.RobertaForMaskedLM, PHOBERT, "the cat sat"),
}


def saved(name: str, folder: Path) -> tuple[Any, Any, str]:
    """A tiny model with its own tokenizer in a folder, the tokenizer, and a text."""
    kind, config, text = MODELS[name]
    torch.manual_seed(0)
    model = kind(config).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    tokenizer = PYTHON_ONLY[name].save(folder)
    model.save_pretrained(folder)
    return model, tokenizer, text


@pytest.mark.parametrize("name", PYTHON_ONLY)
def test_ids_are_the_tokenizers_own_and_tokens_stand_where_they_come_from(
    name: str, tmp_path: Path
) -> None:
    own = PYTHON_ONLY[name].make(tmp_path)
    read = TextTokenizer(PythonTokenizer(own), None, 10**7, 1000, True, True)  # type: ignore
    for text, slices in PYTHON_ONLY[name].texts.items():
        tokens = read.encode(text, bos=True, special=False)
        inner = own.convert_tokens_to_ids(own.tokenize(text))
        table = [[]] if name == "tapas" else []
        assert [token.id for token in tokens] == own.build_inputs_with_special_tokens(inner, *table)
        placed = [token for token in tokens if not token.special]
        assert "|".join(token.text for token in placed) == slices
        assert [text[token.start : token.end] for token in placed] == [t.text for t in placed]


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_folder_with_such_a_tokenizer_are_those_of_eager_attention(
    name: str, tmp_path: Path
) -> None:
    model, tokenizer, text = saved(name, tmp_path / "model")
    pair = name == "byt5"
    captured = attnviz.load_model(str(tmp_path / "model")).capture(
        text, target="a" if pair else None
    )
    eager = type(model).from_pretrained(tmp_path / "model", attn_implementation="eager").eval()
    ids = [token.id for token in captured.record.key_tokens]
    if name != "tapas":  # which wants a table
        assert ids == tokenizer(text)["input_ids"]
    inputs = {"input_ids": torch.tensor([ids])}
    if pair:
        written = [token.id for token in captured.record.query_tokens]
        inputs["decoder_input_ids"] = torch.tensor([[0, *written[:-1]]])
    with torch.no_grad():
        output = eager(**inputs, output_attentions=True)
    theirs = output["cross_attentions" if pair else "attentions"][0][0]
    ours = torch.tensor(captured.record.layers[0].weights)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["esm", "byt5"])
def test_a_model_in_memory_takes_the_tokenizer_that_auto_tokenizer_loads(
    name: str, tmp_path: Path
) -> None:
    model, _, text = saved(name, tmp_path / "model")
    own = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    loaded = attnviz.load_model(model, tokenizer=own)
    target = {"target": "a"} if name == "byt5" else {}
    ids = [token.id for token in loaded.capture(text, **target).record.key_tokens]
    assert ids == own(text)["input_ids"]


def test_a_note_says_that_places_are_found_by_what_tokens_spell(run: Run, tmp_path: Path) -> None:
    saved("esm", tmp_path / "model")
    ended = run("show", "MKTAYIAKQR", "--model", str(tmp_path / "model"))
    assert ended.status is ExitStatus.OK, ended.err
    assert ALIGNED in ended.err


def test_a_special_token_that_a_text_spells_is_text_unless_it_is_asked_for(tmp_path: Path) -> None:
    own = PYTHON_ONLY["phobert"].make(tmp_path)
    read = TextTokenizer(PythonTokenizer(own), None, 10**7, 1000, True, True)  # type: ignore
    mask, text = own.mask_token_id, "the <mask> cat"
    assert mask in [t.id for t in read.encode(text, bos=True, special=True)]
    assert mask not in [t.id for t in read.encode(text, bos=True, special=False)]


def test_a_tokenizer_that_needs_a_package_is_one_sentence_with_the_command(
    run: Run, tmp_path: Path
) -> None:
    config = transformers.BioGptConfig(**BERT)
    transformers.BioGptForCausalLM(config).save_pretrained(tmp_path)
    PYTHON_ONLY["ctrl"].save(tmp_path / "vocabulary")
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / "vocabulary" / name).rename(tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = run("show", "the cat", "--model", str(tmp_path))
    assert ended.status is ExitStatus.MODEL
    assert ended.err.endswith("with: pip install sacremoses.\n")
    assert PACKAGES.search("You need to install sacremoses to use BioGptTokenizer")


@pytest.mark.parametrize(
    ("name", "content"), [("vocab.txt", "<unk>\n" + "x" * 2000), ("added_tokens.json", "[1]")]
)
def test_a_vocabulary_that_is_none_is_one_sentence(tmp_path: Path, name: str, content: str) -> None:
    saved("esm", tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(ModelError):
        attnviz.load_model(str(tmp_path))


def test_settings_that_name_another_file_are_left_out(tmp_path: Path) -> None:
    saved("esm", tmp_path / "model")
    (tmp_path / "elsewhere.txt").write_text("secret\n<unk>")
    path = tmp_path / "model" / "tokenizer_config.json"
    settings = {**json.loads(path.read_text()), "vocab_file": str(tmp_path / "elsewhere.txt")}
    settings["mecab_kwargs"] = {"mecab_dic": "ipadic", "mecab_option": f"-r {tmp_path}/elsewhere"}
    path.write_text(json.dumps(settings))
    own = backend_of(tmp_path / "model")[0].own
    assert "secret" not in own.get_vocab()
    assert own.init_kwargs["mecab_kwargs"] == {"mecab_dic": "ipadic"}
