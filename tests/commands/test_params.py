"""`attnviz params`: parameter counts in a table, as JSON and as rows."""

from pathlib import Path

import pytest

import attnviz
from attnviz.errors import ExitStatus
from attnviz.models.scratch.native import save_checkpoint
from tests.conftest import Run, bytes_tokenizer, tiny_model
from tests.reading import on_one_line, rows_of


def test_gpt3_has_the_total_of_the_model_and_that_of_the_lesson(run: Run) -> None:
    """The lesson counts an untied unembedding, and neither positions nor biases nor norms."""
    shown = on_one_line(run("params", "gpt3", "--width", "200").out)
    assert "as built 174,604,259,328 all of the above; the unembedding is tied" in shown
    assert "as lessons count 175,181,291,520 with an untied unembedding (617,558,016)" in shown
    (record,) = rows_of(run("params", "gpt3", "-f", "json").out)
    assert (record["total"], record["lesson_total"]) == (174_604_259_328, 175_181_291_520)
    for name in ("", "lesson_"):
        share = record["attention"] / record[f"{name}total"]
        assert record[f"{name}attention_share"] == share
    (gpt2,) = rows_of(run("params", "gpt2", "-f", "json").out)
    assert gpt2["lesson_total"] is gpt2["lesson_attention_share"] is None


def test_the_built_in_model_is_counted_where_none_is_named(run: Run) -> None:
    (record,) = rows_of(run("params", "-f", "json").out)
    assert record["name"] == "builtin"
    assert record["total"] == attnviz.load_model()._loaded.identity.parameters
    assert sum(matrix["total"] for matrix in record["matrices"]) == record["total"]


def test_grouped_heads_are_said_to_be_shared(run: Run, tmp_path: Path) -> None:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    shown = on_one_line(run("params", str(tmp_path), "--width", "200").out)
    assert "one key/value head 288 W_K, W_V, shared by 2 query heads" in shown
    assert "one layer 1,728 4 heads, 2 key/value heads" in shown


def test_matrices_of_the_same_name_say_whose_they_are(run: Run, tmp_path: Path) -> None:
    import transformers

    config = transformers.T5Config(
        vocab_size=50, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_heads=4
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    shown = on_one_line(run("params", str(tmp_path), "--width", "200").out)
    for of in ("encoder.block.*", "decoder.block.*"):
        assert f"W_Q of {of}" in shown
    assert "EncDecAttention" in shown


def test_embeddings_are_no_model_to_count(run: Run) -> None:
    ended = run("params", "embeddings")
    assert ended.status is ExitStatus.USAGE
    assert "count those of builtin" in ended.err


@pytest.mark.parametrize("name", ["builtin", "translator", "gpt2"])
def test_a_weight_stands_before_its_bias(run: Run, name: str) -> None:
    (record,) = rows_of(run("params", name, "-f", "json").out)
    sources = [row["source"] for row in record["matrices"]]
    for source in sources:
        weight = source.removesuffix("bias") + "weight"
        if source.endswith("bias"):
            assert sources.index(weight) < sources.index(source)


@pytest.mark.parametrize("name", ["gpt3", "translator"])
@pytest.mark.parametrize("width", ["40", "60", "80", "200"])
def test_at_every_width_everything_is_shown_and_no_line_ends_in_spaces(
    run: Run, name: str, width: str
) -> None:
    lines = run("params", name, "--width", width).out.splitlines()
    assert all(len(line) <= int(width) and line == line.rstrip() for line in lines)
    words = set(" ".join(lines).replace(":", " ").split())
    (record,) = rows_of(run("params", name, "-f", "json").out)
    for matrix in record["matrices"]:
        assert {f"{matrix['each']:,}", f"{matrix['total']:,}", matrix["name"]} <= words
        assert "×".join(map(str, matrix["shape"])) in words
    assert "…" not in "".join(words)


def test_one_layer_is_not_called_layers(run: Run, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, tiny_model(n_layer=1), bytes_tokenizer())
    for command in ("params", "models"):
        shown = on_one_line(run(command, str(tmp_path)).out)
        assert "1 layer" in shown
        assert "1 layers" not in shown


def test_one_is_never_said_in_the_plural(run: Run, tmp_path: Path) -> None:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=1,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    shown = on_one_line(run("params", str(tmp_path), "--width", "200").out)
    assert "one layer 1,440 4 heads, 1 key/value head " in shown
    assert "1 layer, 4 heads a layer, 1 key/value head, d_model 24" in shown
    assert repr(attnviz.load_model("embeddings")) == "<Model embeddings, 1 layer, 1 head>"
