"""`why` of several texts: what each part adds to a score, on the mean."""

import json
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus, InputError, UsageError
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

TEXTS = [f"a {a} {b} slept . the {b} was" for a, b in (("blue", "bird"), ("red", "fox"))]
ASKED = {"head": "L4H0", "query": "-1", "key": "/blue|red/"}


def test_the_parts_of_each_side_are_means_and_add_up_to_the_mean_contrast() -> None:
    found = attnviz.why(TEXTS, **ASKED)
    each = [attnviz.why(text, **ASKED).record for text in TEXTS]
    record = found.record
    contrasts = [why.contrast for why in each]
    assert record.contrast.mean == pytest.approx(mean(contrasts))
    assert record.contrast.error == pytest.approx(stdev(contrasts) / 2**0.5)
    for shares, side in ((record.query_shares, "query_shares"), (record.key_shares, "key_shares")):
        for part, value in shares.means:
            own = [getattr(why, side) for why in each]
            values = [float(s.values[0, s.parts.index(part)]) for s in own]
            assert value.mean == pytest.approx(mean(values), abs=1e-6)
        assert shares.values.sum(axis=1) == pytest.approx(np.array(contrasts), abs=1e-4)


def test_the_weight_is_the_mean_weight_of_the_keys(run: Run, tmp_path: Path) -> None:
    weights = [attnviz.capture(text, heads="L4H0").pattern(4, 0)[8, 2] for text in TEXTS]
    lines = tmp_path / "pairs.jsonl"
    rows = [{"text": text, "query": "-1", "key": text.split()[1]} for text in TEXTS]
    lines.write_text("\n".join(map(json.dumps, rows)))
    out = on_one_line(run("why", "--pairs", str(lines), "--head", "L4H0").out)
    error = stdev(map(float, weights)) / 2**0.5
    assert out.startswith(
        f"L4H0: “was” attends to its key ({np.mean(weights):.2f} ± {error:.2f}) · builtin, mean of "
        "2 texts"
    )


def test_roles_name_the_tokens_that_parts_are_from(run: Run) -> None:
    options = ("--head", "L4H0", "--query", "-1", "--segment", "colour=/blue|red/", "-f", "jsonl")
    given = "\n".join(TEXTS).encode()
    rows = rows_in(run("why", "--lines", *options, stdin=given).out)
    means = [row for row in rows if row["line"] is None]
    assert {row["key_role"] for row in means} >= {"colour", "other"}
    assert any(row["key_part"] == "L0 MLP at colour" for row in means)
    assert {row["key_source"] for row in means} == {None}
    assert {row["line"] for row in rows} == {1, 2, None}


def test_each_text_may_have_a_query_and_a_key_of_its_own(run: Run, tmp_path: Path) -> None:
    keys = [text.split()[1] for text in TEXTS]
    wanted = attnviz.why(TEXTS, **ASKED).record.contrast
    found = attnviz.why(TEXTS, head="L4H0", query=[8, "was"], key=keys)
    assert found.record.contrast == wanted
    with pytest.raises(UsageError, match="key has 1 token for 2 texts"):
        attnviz.why(TEXTS, head="L4H0", key=["blue"])
    pairs, rows = tmp_path / "pairs.jsonl", []
    for text, query, key in zip(TEXTS, (-1, 8), (keys[0], 2), strict=True):
        rows.append(json.dumps({"text": text, "query": query, "key": key}))
    pairs.write_text("\n".join(rows))
    given = "why", "--pairs", str(pairs), "--head", "L4H0"
    assert f"{wanted.mean:+.3f} ± {wanted.error:.3f}" in on_one_line(run(*given).out)
    pairs.write_text('{"text": "a blue bird", "query": true}')
    ended = run(*given)
    assert ended.status == ExitStatus.INPUT
    assert 'query is not a text; give {"text"' in ended.err


def test_the_queries_and_keys_are_told() -> None:
    texts = [TEXTS[0], "the big red fox slept . the fox was"]
    for asked, told in (
        ({}, "query: the last word of each text; key: the strongest of each"),
        ({"query": "-1"}, "query: -1 of each text; key: the strongest of each"),
        (
            {"query": [8, 9], "key": "/blue|red/"},
            "query: of its own for each text; key: /blue|red/",
        ),
    ):
        out = on_one_line(str(attnviz.why(texts, head="L4H0", **asked)))
        assert told in out


def test_a_part_that_some_texts_lack_says_how_many_have_it() -> None:
    found = attnviz.why(TEXTS, **ASKED, roles="word")
    out = on_one_line(str(found))
    record = found.record
    blue = record.roles.index("blue")
    part = [part.source for part in record.key_shares.parts].index(blue)
    assert record.key_shares.sums[part] == 1
    assert record.key_shares.values[1, part] == 0
    assert "texts: the number that have the part, which counts as 0 in the others" in out
    assert "texts: how many" not in str(attnviz.why(TEXTS, **ASKED, roles="position"))


def test_positions_of_texts_of_several_lengths_do_not_correspond() -> None:
    texts = [TEXTS[0], "the big red fox slept . the fox was"]
    said = "the texts have 9 to 10 tokens, so that positions do not correspond"
    with pytest.raises(InputError, match=said) as raised:
        attnviz.why(texts, **ASKED, roles="position")
    assert "roles='word'" in str(raised.value)
    with pytest.raises(InputError, match=said):
        attnviz.predict(texts, attribute=True, roles="position")
    assert attnviz.why(texts, **ASKED, roles="word").record.texts == 2


def test_several_heads_or_tokens_without_roles_are_refused(run: Run) -> None:
    with pytest.raises(InputError, match="no roles"):
        attnviz.why(TEXTS, **ASKED, group="source")
    with pytest.raises(UsageError, match="no tokens to distinguish"):
        attnviz.why(TEXTS, **ASKED, group="layer", roles="word")
    done = run("why", *ASKED_ON_LINES, "--writes", stdin="\n".join(TEXTS).encode())
    assert done.status == ExitStatus.USAGE
    assert "--lines does nothing with --writes" in done.err


ASKED_ON_LINES = "--lines", "--head", "L4H0", "--query", "-1"
