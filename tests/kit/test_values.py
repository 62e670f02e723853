"""What people give by mistake is refused in a sentence, in every public function alike."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz.errors import AttnvizError, UsageError
from tests.architectures import gpt2_in_memory

TEXT = "a fluffy blue creature"
MODELLED: dict[str, Callable[..., object]] = {
    "ablate": lambda model: attnviz.ablate(TEXT, model),
    "against": lambda model: attnviz.compare(TEXT, against=model),
    "capture": lambda model: attnviz.capture(TEXT, model),
    "circuit": lambda model: attnviz.circuit(TEXT, TEXT, model, find=1),
    "compare": lambda model: attnviz.compare(TEXT, TEXT, model=model),
    "explain": lambda model: attnviz.explain(TEXT, model),
    "generate": lambda model: attnviz.generate(TEXT, model),
    "heads": lambda model: attnviz.heads(TEXT, model),
    "patch": lambda model: attnviz.patch(TEXT, TEXT, model),
    "predict": lambda model: attnviz.predict(TEXT, model),
    "scan": lambda model: attnviz.scan("none.txt", output="none", model=model),
    "show": lambda model: attnviz.show(TEXT, model),
    "why": lambda model: attnviz.why(TEXT, model),
    "writes": lambda model: attnviz.writes(TEXT, model),
}
TEXTED: dict[str, Callable[..., object]] = {
    "ablate": attnviz.ablate,
    "capture": attnviz.capture,
    "circuit": lambda text: attnviz.circuit(text, TEXT, find=1),
    "compare": lambda text: attnviz.compare(text, TEXT),
    "explain": attnviz.explain,
    "generate": attnviz.generate,
    "heads": lambda text: attnviz.heads(text) if text is not None else attnviz.show(text),
    "patch": lambda text: attnviz.patch(text, TEXT),
    "patch from": lambda text: attnviz.patch(TEXT, text),
    "predict": attnviz.predict,
    "show": attnviz.show,
    "why": attnviz.why,
    "writes": attnviz.writes,
}
CHAT = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def raw() -> Any:
    """A model of transformers as it is, and its tokenizer."""
    return gpt2_in_memory()


@pytest.fixture(scope="module")
def builtin() -> attnviz.Model:
    return attnviz.load_model()


@pytest.mark.parametrize("name", MODELLED)
def test_a_model_that_is_not_loaded_is_told_how_to_load_it(name: str, raw: Any) -> None:
    with pytest.raises(UsageError) as raised:
        MODELLED[name](raw[0])
    assert "is of type GPT2LMHeadModel; give attnviz.load_model(model, tok" in str(raised.value)
    assert str(raised.value).startswith("against" if name == "against" else "model")


@pytest.mark.parametrize("name", [name for name in MODELLED if name != "against"])
@pytest.mark.parametrize(
    "wrong",
    [None, 3, b"gpt2", [], {}, np.zeros(2), object()],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_model_is_told_so(name: str, wrong: object) -> None:
    with pytest.raises(UsageError, match="give a name, a folder, or a model"):
        MODELLED[name](wrong)


def wrong_texts() -> Iterator[object]:
    yield from (None, 5, 1.5, b"bytes", Path("a.txt"), np.zeros(2), {"text": TEXT}, {1, 2})
    yield from ([], [None], [[TEXT]], (number for number in (1, 2)), object(), CHAT, str)


@pytest.mark.parametrize("name", TEXTED)
def test_what_is_no_text_is_told_so(name: str, raw: Any, builtin: attnviz.Model) -> None:
    for wrong in (*wrong_texts(), *raw, builtin):
        if name == "generate" and wrong is CHAT:
            continue
        with pytest.raises(AttnvizError) as raised:
            TEXTED[name](wrong)
        assert str(raised.value).endswith(".")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (b"a", "a value of type bytes is not a text; give a str: data.decode()"),
        (
            Path("a.txt"),
            "PosixPath is not a text; give the content of the file: path.read_text()",
        ),
        (CHAT[0], "dict is not a text; give a str; attnviz.generate takes a chat"),
        (None, "None is not a text; give a str"),
    ],
)
def test_the_sentence_says_what_to_give_instead(wrong: Any, said: str) -> None:
    with pytest.raises(UsageError, match=r".*") as raised:
        attnviz.capture(wrong)
    assert said.replace("PosixPath", type(Path()).__name__) in str(raised.value)


def test_the_model_before_the_text_is_told_so(raw: Any, builtin: attnviz.Model) -> None:
    for wrong in (builtin, raw[0]):
        with pytest.raises(UsageError, match="give the text first, and the model after it"):
            attnviz.capture(wrong, TEXT)  # type: ignore[arg-type]


def test_several_texts_may_come_from_any_iterable() -> None:
    texts = ["a fluffy blue creature", "Bark is very cute"]
    expected = attnviz.predict(texts, top=1).rows
    assert attnviz.predict((text for text in texts), top=1).rows == expected  # type: ignore[arg-type]
    assert attnviz.predict(np.array(texts), top=1).rows == expected  # type: ignore[arg-type]


def test_a_path_names_a_models_folder(gpt2_folder: Path) -> None:
    by_name = attnviz.capture("abc", str(gpt2_folder))
    assert np.array_equal(attnviz.capture("abc", gpt2_folder).pattern(0, 0), by_name.pattern(0, 0))
    assert attnviz.load_model(gpt2_folder).name == str(gpt2_folder)


def test_a_loaded_model_is_not_loaded_again(builtin: attnviz.Model) -> None:
    with pytest.raises(UsageError, match="this model is already loaded; use it directly"):
        attnviz.load_model(builtin)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: attnviz.generate(TEXT, docs=["a"]), "docs is of type list; give texts by name"),
        (lambda: attnviz.generate(TEXT, docs={"a": None}), "None is not a text"),
        (lambda: attnviz.generate(TEXT, docs={"a": Path("a")}), "path.read_text()"),
        (lambda: attnviz.generate(TEXT, temperature="1"), "temperature='1' is not a number"),
        (
            lambda: attnviz.generate(TEXT, top_p=2),
            "top_p=2 is out of range; give more than 0, and at most 1",
        ),
        (lambda: attnviz.generate(TEXT, stop=[3]), "stop is of type int"),
        (lambda: attnviz.generate([]), "the prompt holds no messages"),
        (lambda: attnviz.generate(["a", "b"]), "a value of type list is not a text"),
        (lambda: attnviz.generate({"messages": None}), "the prompt holds no messages"),
        (lambda: attnviz.load(None), "path is of type NoneType; give a path"),
        (lambda: attnviz.atlas(3), "folder is of type int; give a path"),
        (lambda: attnviz.scan(None, output="a"), "corpus is of type NoneType"),
        (lambda: attnviz.scan("a", output=None), "output is of type NoneType"),
        (lambda: attnviz.heads(labels=3), "labels"),
        (lambda: attnviz.show(TEXT, query=1.5), "query is of type float"),
        (lambda: attnviz.show(TEXT, least="x"), "least='x' is not a number"),
        (lambda: attnviz.show(TEXT, view=["grid"]), "is not known; give one of 'table'"),
        (lambda: attnviz.explain(TEXT, only=3), "only is of type int"),
        (lambda: attnviz.load_model(dtype=None), "dtype=None is not known"),
        (lambda: attnviz.predict(TEXT, top=None), "top=None is not a whole number"),
    ],
)
def test_other_values_of_the_wrong_kind_are_told(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(AttnvizError) as raised:
        wrong()
    assert said in str(raised.value)


def test_none_shows_every_query_and_a_number_of_numpy_is_one() -> None:
    whole = attnviz.show(TEXT, heads="L3H2").to_columns()["weight"]
    none = attnviz.show(TEXT, heads="L3H2", query=None, key=None, drop_key=None)  # type: ignore[arg-type]
    assert np.array_equal(none.to_columns()["weight"], whole)
    for two in (range(3, 5), np.array([3, 4]), {3, 4}):
        assert set(attnviz.show(TEXT, query=two).to_columns()["query"]) == {3, 4}  # type: ignore[arg-type]
    assert set(attnviz.show(TEXT, query=np.int64(4)).to_columns()["query"]) == {4}  # type: ignore[arg-type]


def test_one_stop_is_one_text() -> None:
    from attnviz.kit.values import words

    assert words("stop", "\n\n") == ("\n\n",)


TEMPLATE = """{% for d in documents or [] %}{{ d['title'] }}: {{ d['text'] }}
{% endfor %}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}
{% endfor %}"""


def test_a_chat_may_be_an_object_with_messages_and_documents(gpt2_copy: Path) -> None:
    (gpt2_copy / "chat_template.jinja").write_text(TEMPLATE)
    model = attnviz.load_model(gpt2_copy)
    as_list = model.generate(CHAT, max_new_tokens=2)
    as_object = model.generate({"messages": CHAT}, max_new_tokens=2)
    assert as_object.shares() == as_list.shares()
    documents = [{"title": "a", "text": "the cat"}]
    cited = model.generate({"messages": CHAT, "documents": documents}, max_new_tokens=2)
    assert "a" in {row["segment"] for row in cited.shares()}


# Token ids in the place of a text.

SOURCE = "a fluffy green creature"


def ids_of(text: str, model: attnviz.Model) -> list[int]:
    return [token.id for token in model.tokens(text).record]


ANSWERED = {"heads": "L4H0", "answer": "blue"}
READ: dict[str, Callable[[attnviz.Model, Any, Any], Any]] = {
    "ablate": lambda model, text, _: model.ablate(text, **ANSWERED).rows,
    "capture": lambda model, text, _: model.capture(text).links(top=3),
    "circuit": lambda model, text, other: model.circuit(text, other, **ANSWERED).rows,
    "compare": lambda model, text, other: model.compare(text, other).rows,
    "explain": lambda model, text, _: model.explain(text).arrays["pattern"].tolist(),
    "generate": lambda model, text, _: model.generate(text, max_new_tokens=2).capture.key_tokens,
    "heads": lambda model, text, _: model.heads(text).rows,
    "patch": lambda model, text, other: model.patch(text, other, **ANSWERED).rows,
    "predict": lambda model, text, _: model.predict(text, answer="blue").rows,
    "several": lambda model, text, other: model.predict([text, other], top=1).rows,
    "show": lambda model, text, _: model.show(text).to_columns(),
    "tokens": lambda model, text, _: model.tokens(text).rows,
    "verify": lambda model, text, _: model.verify(text).weights,
    "why": lambda model, text, _: model.why(text, head="L3H2").rows,
    "writes": lambda model, text, _: model.writes(text, head="L3H2").rows,
}


@pytest.mark.parametrize("name", READ)
def test_the_ids_of_a_text_say_what_the_text_says(name: str, builtin: attnviz.Model) -> None:
    ids, others = ids_of(TEXT, builtin), ids_of(SOURCE, builtin)
    expected = READ[name](builtin, TEXT, SOURCE)
    assert str(READ[name](builtin, ids, others)) == str(expected)
    assert str(READ[name](builtin, torch.tensor([ids]), np.array(others))) == str(expected)


def test_a_single_id_and_numbers_of_numpy_are_ids_and_a_batch_is_several_texts() -> None:
    one, two = attnviz.tokens([5]), attnviz.tokens([5, 7])
    for given in (np.array([5]), np.array([[5]]), torch.tensor([[5]]), [np.int64(5)]):
        assert attnviz.tokens(given).rows == one.rows
    assert attnviz.tokens([np.int64(5), np.int32(7)]).rows == two.rows
    batch = attnviz.heads(torch.tensor([[5, 7, 9], [9, 5, 5]]))
    assert str(batch) == str(attnviz.heads([[5, 7, 9], [9, 5, 5]]))
    assert "means over 2 texts" in str(batch)


def test_ids_are_read_as_they_are_though_their_text_has_others() -> None:
    model = attnviz.load_model()
    letters = [id_ for letter in "blue" for id_ in ids_of(letter, model)[1:]]
    assert letters != ids_of("blue", model)[1:]
    for read in (model.capture(letters), model.generate(letters, max_new_tokens=1).capture):
        assert [token.id for token in read.key_tokens][: len(letters)] == letters
    text, tokens = model.capture(letters).text, model.capture(letters).tokens
    assert [text[token.start : token.end] for token in tokens] == [t.text for t in tokens]
    assert [token.text for token in tokens if token.text != " "] == list("blue")
    measured = model.predict(letters, answer="red", top=1)
    assert measured.record.capture.query_tokens == tokens


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: attnviz.capture([14000]), "has no token 14000; give ids from 0 to 13,999."),
        (lambda: attnviz.tokens([5, -1]), "has no token -1; give ids from 0 to 13,999."),
        (lambda: attnviz.capture([5, "a"]), "a value of type int is not a text"),
        (lambda: attnviz.capture([5, True]), "a value of type int is not a text"),
        (lambda: attnviz.capture([5], bos=True), "bos has no effect on token ids; leave it out."),
        (lambda: attnviz.capture([5], special=True), "special has no effect on token ids"),
        (lambda: attnviz.capture([5], "shapes-vit"), "reads no text"),
        (
            lambda: attnviz.generate([5], docs={"a": "b"}),
            "docs has no effect on token ids; leave it out.",
        ),
    ],
)
def test_ids_that_cannot_be_read_are_refused(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(AttnvizError) as raised:
        wrong()
    assert said in str(raised.value)


def test_heads_of_several_texts_are_means_over_them() -> None:
    texts = ["the cat saw the dog and the cat ran", "a blue bird met a red bird", "a b a b"]
    model = attnviz.load_model()
    whole, each = model.heads(texts), [model.heads(text).rows for text in texts]
    for name in ("entropy", "previous", "first", "duplicate", "induction"):
        values = np.array([[row[name] for row in rows] for rows in each], float)
        np.testing.assert_allclose(
            [row[name] for row in whole.rows], np.nanmean(values, axis=0), atol=1e-6
        )
    assert whole.rows[0]["measured"] == "builtin, means over 3 texts"
    assert [captured.text for captured in whole.captures] == texts
    assert model.heads(texts[:1]).rows == model.heads(texts[0]).rows


# Models of sentence-transformers, by the structure that its documents give them.


class Transformer(nn.Module):
    def __init__(self, model: nn.Module, tokenizer: Any) -> None:
        super().__init__()
        self.auto_model, self.tokenizer = model, tokenizer


class CrossEncoder(nn.Module):
    def __init__(self, model: nn.Module, tokenizer: Any) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer


def test_a_model_of_sentence_transformers_is_the_one_that_it_runs(raw: Any) -> None:
    plain = attnviz.load_model(*raw).capture("abcab").pattern(1, 1)
    for wrapped in (nn.Sequential(Transformer(*raw), nn.Identity()), CrossEncoder(*raw)):
        assert np.array_equal(attnviz.load_model(wrapped).capture("abcab").pattern(1, 1), plain)
    with pytest.raises(AttnvizError, match="a Linear is not a transformers model"):
        attnviz.load_model(nn.Linear(2, 2))
