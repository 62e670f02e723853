"""Which token an answer is: the word as it follows the text."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

import attnviz
from attnviz.models.scratch.native import save_checkpoint
from tests.conftest import END, Run, loaded_once, tiny_model

# red is one token, and " red" two: " r" and "ed"; " blue" is one
MERGES = [("Ġ", "r"), ("e", "d"), ("r", "ed"), ("Ġ", "b"), ("l", "u"), ("lu", "e"), ("Ġb", "lue")]


def like_gpt2() -> Tokenizer:
    letters = [END, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocab = dict.fromkeys([*letters, *(a + b for a, b in MERGES)])
    backend = Tokenizer(BPE({piece: i for i, piece in enumerate(vocab)}, MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([END])
    return backend


def like_sentencepiece() -> Tokenizer:
    """As Gemma's: no space before a text, and Chinese words of their own."""
    merges = [("▁", "r"), ("e", "d"), ("r", "ed"), ("▁", "b"), ("喜", "欢")]
    letters = [END, *'▁abcdefghijklmnopqrstuvwxyz."“(0123456789:=\n我喜欢猫私はペン']
    vocab = dict.fromkeys([*letters, *(a + b for a, b in merges)])
    backend = Tokenizer(BPE({piece: i for i, piece in enumerate(vocab)}, merges, unk_token=END))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    backend.decoder = decoders.Metaspace(prepend_scheme="never")
    backend.add_special_tokens([END])
    return backend


@cache
def model(kind: str) -> attnviz.Model:
    backend, folder = {"gpt2": like_gpt2, "pieces": like_sentencepiece}[kind](), Path(mkdtemp())
    sizes = {"vocab_size": backend.get_vocab_size(), "n_positions": 101}
    save_checkpoint(folder, tiny_model(**sizes), backend)
    return attnviz.load_model(loaded_once(folder))


CASES = [
    # text, word, the text of its token, whether it is only the first
    ("gpt2", "it was", "red", " r", True),
    ("gpt2", "it was ", "red", "red", False),
    ("gpt2", "it was\n", "red", "red", False),
    ("gpt2", "it was", " red", " r", True),  # with its space given
    ("gpt2", 'he said "', "red", "red", False),
    ("gpt2", 'he said "no"', "red", " r", True),
    ("gpt2", "he said “", "red", "red", False),
    ("gpt2", "(", "red", "red", False),
    ("gpt2", "it was:", "red", " r", True),
    ("gpt2", "it was", "blue", " blue", False),
    ("gpt2", "it was", ".", ".", False),
    ("gpt2", "it was . it was", ".", " ", True),  # as in this text; the space is a token
    ("gpt2", "2+2=", "4", "4", False),
    ("gpt2", "2 + 2 =", "4", " ", True),
    ("gpt2", "the dog", "'s", "'", True),
    ("gpt2", "well-", "red", "red", False),
    ("pieces", "it was", "red", " r", True),
    ("pieces", "it was ", "red", "red", False),
    ("pieces", "it was\n", "red", "red", False),
    ("pieces", "我", "喜欢", "喜欢", False),
    ("pieces", "我喜", "欢", "欢", False),  # which the tokenizer joins with the text
    ("pieces", "私は", "ペン", "ペ", True),
    ("pieces", "it was", "猫", "猫", False),
    ("pieces", 'it was "', "red", "red", False),
    ("pieces", "it was", ".", ".", False),
    ("pieces", "it was 4", "2", " ", True),
]


@pytest.mark.parametrize(("kind", "text", "word", "exact", "first"), CASES)
def test_an_answer_is_the_first_token_of_the_word_as_it_follows_the_text(
    kind: str, text: str, word: str, exact: str, first: bool
) -> None:
    asked = attnviz.predict(text, model(kind), answer=word).record.asked
    assert asked is not None
    answer = asked.question.answer
    assert (answer.exact, answer.begins) == (exact, word if first else "")


def test_every_command_measures_the_same_token_and_says_which(run: Run) -> None:
    folder = str(model("gpt2")._loaded.tokenizer.folder)
    text, source, to = "he sat . it was", "he sit . it was", ("-f", "json")
    given = ("-m", folder, "--answer", "red", "--versus", "blue")
    commands = (
        ("predict", text),
        ("ablate", text),
        ("ablate", text, "--head", "L1H1", "--together"),
        ("patch", text, "--from", source),
        ("circuit", text, "--from", source, "--head", "L1H1"),
    )
    for command in commands:
        out = run(*command, *given, *to).out
        assert 'answer_exact": " r"' in out, command
        said = " ".join(run(*command, *given).out.split())
        assert "r, the first token of red" in said, command


def test_words_that_share_the_space_before_them_are_compared_without_it() -> None:
    asked = attnviz.predict("2 + 2 =", model("gpt2"), answer="4", versus="5")
    assert asked.record.asked is not None
    assert [token.exact for token in asked.record.asked.question.tokens] == ["4", "5"]
    assert '"4" without the space before it' in " ".join(str(asked).split())
    after_space = attnviz.predict("2 + 2 = ", model("gpt2"), answer="4", versus="5")
    assert "without the space" not in str(after_space)


def test_effects_in_half_precision_say_so(run: Run) -> None:
    folder = str(model("gpt2")._loaded.tokenizer.folder)
    text, source = "he sat . it was", "he sit . it was"
    for command in (
        ("ablate", text, "--head", "L1H1"),
        ("patch", text, "--from", source, "--head", "L1H1"),
        ("circuit", text, "--from", source, "--head", "L1H1"),
    ):
        for dtype in ("bfloat16", "float32"):
            out = run(*command, "-m", folder, "--dtype", dtype, "--answer", "red").out
            assert ("in bfloat16;" in " ".join(out.split())) is (dtype == "bfloat16"), command
