"""The same from Python, and the queries that the documents show."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest
import torch

import attnviz
from attnviz.corpus.result import read_atlas
from attnviz.errors import InputError, UsageError
from tests.conftest import Run, bytes_tokenizer

DOCUMENT = Path(__file__).parents[3] / "docs" / "scan.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a scan called scanned."""
    place = tmp_path_factory.mktemp("python")
    texts = place / "texts.jsonl"
    texts.write_text('{"body": "a fluffy blue creature"}\n{"body": "the creature was blue"}\n')
    attnviz.scan(texts, output=place / "scanned", field="body", layers="1-3", workers=1)
    return place


def test_a_scan_from_python_is_that_of_the_command(folder: Path) -> None:
    found = attnviz.atlas(folder / "scanned")
    assert repr(found) == "<ScanAtlas of builtin: 12 heads, 2 documents, 10 tokens>"
    assert found.rows == read_atlas(folder / "scanned").rows
    assert found.manifest["key"] == "body"
    head = found.head("L1H2")
    assert repr(head).startswith("<HeadAtlas of builtin L1H2: 9 scores, 3 histograms, ")
    assert len(repr(head)) < 100
    assert str(head.head) == "L1H2"
    assert len(head.examples) == 2
    with pytest.raises(UsageError, match="L4H0"):
        found.head("L4H0")
    with pytest.raises(InputError, match="holds no scan"):
        attnviz.atlas(folder)


def test_paths_may_be_of_any_kind_that_python_takes_for_one(tmp_path: Path) -> None:
    class Place:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __fspath__(self) -> str:
            return str(self.path)

    (tmp_path / "a.txt").write_text("the cat sat on the mat")
    out = Place(tmp_path / "scanned")
    scanned = attnviz.scan(Place(tmp_path / "a.txt"), output=out, workers=1, heads="L1H2")
    assert scanned.rows == attnviz.atlas(out).rows


def test_a_scan_is_written_as_the_command_writes_it(folder: Path, tmp_path: Path, run: Run) -> None:
    found = attnviz.atlas(folder / "scanned")
    for form in ("csv", "svg", "html"):
        found.save(tmp_path / f"python.{form}")
        run("atlas", str(folder / "scanned"), "-o", str(tmp_path / f"command.{form}"))
        written = (tmp_path / f"python.{form}").read_bytes()
        assert written == (tmp_path / f"command.{form}").read_bytes()
    with pytest.raises(UsageError, match="writes no npz"):
        found.save(tmp_path / "python.npz")


def test_columns_make_a_table(folder: Path) -> None:
    found = attnviz.atlas(folder / "scanned")
    table = pandas.DataFrame(found.to_columns())
    assert list(table["head"]) == [row["head"] for row in found.rows]
    assert table["first"].between(0, 1).all()


def test_the_queries_of_the_document_work_as_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = DOCUMENT.read_text(encoding="utf-8")
    python, _alike = re.findall(r"```python\n(.*?)```", text, re.DOTALL)  # the latter: test_alike
    before, _, last = python.strip().rpartition("\n\n")
    names: dict[str, object] = {}
    exec(before, names)
    best = eval(last, names)
    assert isinstance(best, pandas.DataFrame)
    assert list(best.columns) == ["layer", "head", "induction"]
    (sql,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    rows = duckdb.sql(sql).fetchall()
    assert rows
    assert all(0 <= layer < 5 and 0 <= head < 4 for layer, head, _, _ in rows)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("the cat sat on the mat and the cat ran\n" * 9, encoding="utf-8")
    return path


def test_a_model_in_memory_is_scanned_in_this_process_to_the_same_rows(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = attnviz.scan(corpus, output=tmp_path / "by name", workers=1).rows
    monkeypatch.setattr("multiprocessing.get_context", None)  # no process is started
    before = torch.get_num_threads()
    held = attnviz.scan(corpus, output=tmp_path / "held", model=attnviz.load_model())
    assert held.rows == expected
    assert held.model == "builtin"
    assert torch.get_num_threads() == before


def test_a_scan_of_a_model_in_memory_goes_on_with_the_same_weights_alone(
    corpus: Path, tmp_path: Path
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())
    sizes = {"vocab_size": 257, "n_positions": 64, "n_embd": 12, "n_layer": 2, "n_head": 3}
    raw = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
    out = tmp_path / "out"
    found = attnviz.scan(corpus, output=out, model=attnviz.load_model(raw, tokenizer))
    held = attnviz.load_model(raw, tokenizer)
    again = attnviz.scan(corpus, output=out, model=held)
    assert again.rows == found.rows
    (told,) = again.made["models"]
    assert told["fingerprint"] == held.verify("a cat").fingerprint  # of all bytes
    with torch.no_grad():
        raw.transformer.h[1].ln_1.bias[3] += 1e-3
    for model in (held, attnviz.load_model(raw, tokenizer)):  # loaded before the change, and after
        with pytest.raises(UsageError, match="holds another scan"):
            attnviz.scan(corpus, output=out, model=model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 2}, "a model in memory is scanned by one worker"),
        ({"ray": "local"}, "a model in memory is scanned by one worker"),
        ({"dtype": "float16"}, "cannot change a model in memory"),
        ({"revision": "main"}, "cannot change a model in memory"),
        ({"kind": "encoder"}, "cannot change a model in memory"),
    ],
)
def test_what_a_model_in_memory_cannot_do_is_refused(
    corpus: Path, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        attnviz.scan(corpus, output=tmp_path / "out", model=attnviz.load_model(), **options)
