"""`attnviz generate`: the answer, and what each part of it looked at."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, normalizers

import attnviz
from attnviz.commands.generate import answer as answers
from attnviz.commands.generate import run as run_module
from attnviz.commands.generate import runs
from attnviz.commands.generate.answer import repeats
from attnviz.commands.generate.run import Writing, answering
from attnviz.draw.titles import beginning
from attnviz.errors import ExitStatus
from attnviz.inputs.prompts import Document, cut_prompt, with_documents
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.catalog import Source, load
from attnviz.records.heads import Head
from tests.browsing import Open, until
from tests.builtin import HEADS
from tests.conftest import Run, slow
from tests.reading import head_of, on_one_line, rows_in, rows_of

PROMPT = "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was"
STOP = ("--stop", ".", "--max-new-tokens", "6")


def test_the_built_in_model_names_the_murderer_and_shares_sum_to_1(run: Run) -> None:
    ended = run("generate", PROMPT, *STOP, "--rows", "token", "-f", "jsonl")
    assert ended.status is ExitStatus.OK, ended.err
    found = rows_in(ended.out)
    assert found[0]["text"] == "Leo"
    assert [row["segment"] for row in found if row["row"] == 1] == ["sink", "1", "2", "3", "answer"]
    for number in {row["row"] for row in found}:
        shares = [float(str(row["share"])) for row in found if row["row"] == number]
        assert sum(shares) == pytest.approx(1, abs=1e-4)


def test_words_in_many_pieces_and_an_answer_without_a_word_have_notes(run: Run) -> None:
    ended = run("generate", "the Zorblax was red . the dog was", "--target", " .")
    assert "hardly knows them: “Zorblax”\n" in ended.err
    assert "the answer has no word" in ended.err
    plain = run("generate", "the cat was red . the dog was", "--target", " red .")
    assert plain.err == ""
    notes = attnviz.generate("the Zorblax was red .", target=" it").notes
    assert any("“Zorblax”" in note for note in notes)


def test_a_given_answer_has_the_rows_of_the_same_answer_written(run: Run) -> None:
    written = rows_in(run("generate", PROMPT, *STOP, "-f", "jsonl").out)
    text = str(written[0]["text"])
    given = rows_in(run("generate", PROMPT, "--target", f" {text}", "-f", "jsonl").out)
    assert [row["segment"] for row in given] == [row["segment"] for row in written]
    for mine, theirs in zip(given, written, strict=True):
        assert mine["share"] == pytest.approx(theirs["share"], abs=1e-5)


def test_a_narrow_table_sums_up_what_does_not_fit(run: Run) -> None:
    prompt = " . ".join(["Anna was kind"] * 12)
    out = run("generate", prompt, "--max-new-tokens", "3", "--width", "50").out
    assert "others" in out
    assert all(len(line) <= 50 for line in out.splitlines())


def test_the_deletion_of_what_tells_costs_most(run: Run) -> None:
    out = run("generate", PROMPT, *STOP, "--check", columns=100).out
    changes = [line.split() for line in out.split("deleted")[1].splitlines()[1:3]]
    assert [row[0] for row in changes] == ["1", "2"]  # the last segment asks, and stays
    assert float(changes[0][2]) < -1 < float(changes[1][2])


def test_the_translators_words_look_at_the_source(run: Run) -> None:
    found = rows_in(
        run("generate", "-m", "translator", "a blue cat", "--rows", "word", "-f", "jsonl").out
    )
    assert {row["segment"] for row in found} == {"1", "special"}
    assert [row["text"] for row in found if row["segment"] == "1"] == ["un", "chat", "bleu"]


def test_a_translation_shows_which_english_token_each_french_one_attends_to(run: Run) -> None:
    shown = run("generate", "-m", "translator", "I love you").out
    assert "“Je t'aime”" in shown  # the tokens stay apart
    strongest = dict(re.findall(r"^ *(\S+) → (\S+)", shown, re.MULTILINE))
    assert strongest == {"Je": "I", "t'": "you", "aime": "love"}
    assert "retrieval" not in shown
    for more in (("--rows", "token"), ("--view", "table"), ("--by", "line")):
        assert "special" in run("generate", "-m", "translator", "I love you", *more).out
    links = run("generate", PROMPT, *STOP, "--view", "links").out
    assert " → " in links
    refused = run("generate", PROMPT, "--view", "links", "--rows", "head")
    assert refused.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("ids", "does"),
    [
        ([1, 2, 3, 1, 2, 3, 1], True),
        ([9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 5], True),
        ([1, 2, 3, 1, 2, 3], False),  # once is no loop
        ([7, 7, 7, 7, 7], True),
        ([7, 7, 7], False),
        ([], False),
    ],
)
def test_an_answer_repeats_itself_where_tokens_begin_a_third_time(
    ids: list[int], does: bool
) -> None:
    assert repeats(ids) == does


def test_an_answer_that_repeats_itself_has_a_note_and_its_sink_a_name(run: Run) -> None:
    looping = run("generate", "Hello")
    assert "the answer repeats itself; --temperature 0.7 draws other tokens" in looping.err
    assert "sink BOS, the first token" in on_one_line(looping.out)
    assert "repeats" not in run("generate", PROMPT, *STOP).err


@pytest.mark.parametrize(
    "content", ["no json", "[]", "{}", '{"messages": 3}', '[{"role": "user"}]', '["a"]', "[" * 9999]
)
def test_a_malformed_chat_is_told(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "chat.json").write_text(content)
    ended = run("generate", "--chat", str(tmp_path / "chat.json"))
    assert ended.status is ExitStatus.INPUT, ended.err
    assert ended.err.count("\n") == 1


TEMPLATE = (
    "{% for m in messages %}{{ '<|endoftext|>' + m['role'] + '\\n' + m['content'] | trim }}"
    "{% endfor %}{% if add_generation_prompt %}<|endoftext|>assistant\\n{% endif %}"
)


def test_a_chats_messages_are_segments_and_so_is_its_template(
    run: Run, gpt2_copy: Path, tmp_path: Path
) -> None:
    (gpt2_copy / "chat_template.jinja").write_text(TEMPLATE)
    chat = [
        {"role": "system", "content": "Be brief. "},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "user", "content": "so?"},
    ]
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    given = ("--chat", str(tmp_path / "chat.json"), "--max-new-tokens", "3", "-f", "jsonl")
    ended = run("generate", "-m", str(gpt2_copy), *given)
    assert ended.status is ExitStatus.OK, ended.err
    named = [row["segment"] for row in rows_in(ended.out) if row["row"] == 1]
    assert named == ["sink", "template", "system", "user 1", "user 2", "answer"]


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{{ x", "does not take this chat"),
    ],
)
def test_a_template_that_fails_is_told(
    run: Run, gpt2_copy: Path, tmp_path: Path, template: str, sentence: str
) -> None:
    (gpt2_copy / "chat_template.jinja").write_text(template)
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "hi"}]')
    ended = run("generate", "-m", str(gpt2_copy), "--chat", str(tmp_path / "chat.json"))
    assert ended.status is ExitStatus.MODEL, ended.err
    assert sentence in ended.err
    assert ended.err.count("\n") == 1


def test_a_chat_of_which_no_token_is_made_is_told(run: Run, gpt2_copy: Path) -> None:
    backend = Tokenizer.from_file(str(gpt2_copy / "tokenizer.json"))
    backend.normalizer = normalizers.Replace("hi", "")
    backend.save(str(gpt2_copy / "tokenizer.json"))
    (gpt2_copy / "chat_template.jinja").write_text("{{ messages[0].content }}")
    chat = b'[{"role": "user", "content": "hi"}]'
    ended = run("generate", "-m", str(gpt2_copy), "--chat", "-", stdin=chat)
    assert ended.status is ExitStatus.INPUT
    assert "makes no token of the text" in ended.err


def test_the_template_that_a_chat_went_through_is_named(run: Run, gpt2_copy: Path) -> None:
    templates = [("default", "D{{ messages[0].content }}"), ("tool_use", "T{{ tools[0].name }}")]
    named = [{"name": name, "template": template} for name, template in templates]
    (gpt2_copy / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    messages = [{"role": "user", "content": "hi"}]
    with_tools = {"messages": messages, "tools": [{"name": "weather"}]}
    for chat, name in ((messages, "default"), (with_tools, "tool_use")):
        stdin = json.dumps(chat).encode()
        ended = run("generate", "-m", str(gpt2_copy), "--chat", "-", "--target", "x", stdin=stdin)
        assert ended.status is ExitStatus.OK, ended.err
        assert f"the chat went through the model's template '{name}'" in ended.err
    answer = attnviz.generate(messages, str(gpt2_copy), target="x")
    assert "the chat went through the model's template 'default'" in answer.notes


def test_a_document_may_be_standard_input(run: Run) -> None:
    asked = ("generate", "who was it ?", "--doc", "-", "--max-new-tokens", "2", "-f", "jsonl")
    ended = run(*asked, stdin=b"the creature was blue .")
    assert ended.status is ExitStatus.OK, ended.err
    assert "standard input" in [row["segment"] for row in rows_in(ended.out)]
    for twice in (("generate", "--doc", "-"), ("generate", "who ?", "--doc", "-", "--doc", "-")):
        ended = run(*twice, stdin=b"the creature was blue .")
        assert ended.status is ExitStatus.USAGE
        assert "standard input is one text" in ended.err


def test_the_changes_of_an_answers_parts_are_those_of_the_whole(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"the creature of {name} was blue . \n")
    docs = [each for name in ("a", "b") for each in ("--doc", str(tmp_path / name))]
    asked = ["generate", "it was", *docs, "--target", "blue . the cat sat .", "--check"]

    def changes(unit: str) -> dict[str, list[float]]:
        ended = run(*asked, "--rows", unit, "-f", "jsonl")
        found = [row for row in rows_in(ended.out) if row["change"] is not None]
        return {n: [r["change"] for r in found if r["segment"] == n] for n in ("a", "b")}

    whole = attnviz.generate(
        "it was",
        docs={name: f"the creature of {name} was blue . \n" for name in ("a", "b")},
        target="blue . the cat sat .",
    ).check()
    effects = {effect.segment: effect.change for effect in whole.effects}
    for unit, parts in (("token", 6), ("word", 6), ("sentence", 2)):
        for name, found in changes(unit).items():
            assert len(found) == parts
            assert sum(found) == pytest.approx(effects[name], abs=1e-4)
            assert len(set(found)) > 1


def test_rows_of_a_stream_are_those_of_the_whole_answer(run: Run) -> None:
    for unit in ("token", "word", "sentence"):
        options = ("generate", PROMPT, "--max-new-tokens", "12", "--rows", unit)
        streamed = rows_in(run(*options, "-f", "jsonl").out)
        assert streamed == rows_of(run(*options, "-f", "json").out)
        table = run(*options, "-f", "csv").out.splitlines()
        assert len(table) == 1 + len(streamed)
        assert table[0] == "line,row,text,segment,part,share,heads,rests"


def test_a_row_goes_out_before_the_model_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(
        load(Source()), cut_prompt(PROMPT, None, ()), TextOptions(), Writing(), HeadOptions()
    )
    seen = list[None]()
    parts = asked.stream("token", lambda: seen.append(None))
    first = next(parts)
    assert (first.before, len(first.parts), first.answer.columns[0].name) == (0, 1, "sink")
    assert len(seen) == 2
    assert 1 + sum(len(each.parts) for each in parts) == len(seen)


def test_a_saved_answer_holds_each_heads_rows_and_its_segments(run: Run, tmp_path: Path) -> None:
    saved, page = tmp_path / "answer.npz", tmp_path / "answer.html"
    heads = ("--head", "all")
    assert run("generate", PROMPT, *STOP, *heads, "-o", str(saved)).status is ExitStatus.OK
    held = attnviz.load(saved).record
    assert len(held.heads) == len(HEADS)
    assert [segment.name for segment in held.segments] == ["1", "2", "3"]
    # the same rows as a run over prompt and answer has, where they stand
    whole = attnviz.capture(held.text)
    first = len(held.key_tokens) - len(held.query_tokens)
    for head in held.heads:
        rows_of_run = whole.pattern(*head)[first : first + len(held.query_tokens)]
        np.testing.assert_allclose(
            held.weights(head), rows_of_run[:, : len(held.key_tokens)], atol=1e-5
        )
    shown = run("show", str(saved), "--head", "L4H0", "--query", "0").out
    assert "Leo → Leo#1 " in shown
    assert run("show", str(saved), "-o", str(page)).status is ExitStatus.OK


FILLER = "Anna painted the door . the police came to the house . "
LONG = f"{FILLER * 6}the count was stabbed by Victor . {FILLER * 5}therefore the murderer was"
SOURCE = """() => {
  const box = document.querySelector("#words-of-keys"), outer = box.getBoundingClientRect();
  const strength = (word) => Number((word.style.background.match(/[\\d.]+(?=\\))/) || [0])[0]);
  const words = [...box.querySelectorAll("span")].filter((word) => !word.dir);
  const [source] = words.sort((a, b) => strength(b) - strength(a));
  const inner = source.getBoundingClientRect(), seen = inner.top >= outer.top;
  return { seen: seen && inner.bottom <= outer.bottom, shaded: strength(source) > 0 };
}"""


@pytest.mark.parametrize("width", [390, slow(1280)])
@pytest.mark.parametrize("start", [0, 9999])
def test_a_word_of_the_answer_scrolls_its_source_into_view(
    run: Run, opened: Open, tmp_path: Path, width: int, start: int
) -> None:
    written = tmp_path / "answer.html"
    asked = ("generate", LONG, *STOP, "--head", "L4H0", "-o", str(written))
    assert run(*asked).status is ExitStatus.OK
    page = opened(written)
    page.set_viewport_size({"width": width, "height": 700})
    page.mouse.move(0, 0)
    page.evaluate(f"document.querySelector('#words-of-keys').scrollTop = {start}")
    page.locator("#words-of-queries span").first.hover()
    until(page, f"({SOURCE})().shaded && ({SOURCE})().seen")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_columns_of_a_picture_are_named_by_how_segments_begin(run: Run, tmp_path: Path) -> None:
    drawn = tmp_path / "answer.svg"
    assert run("generate", PROMPT, *STOP, "-o", str(drawn)).status is ExitStatus.OK
    said = re.findall("<text[^>]*>([^<]*)<", drawn.read_text())
    names = [re.fullmatch(r"(\d) (.*?)(?: …|…)?", each) for each in said]
    begun = {found[1]: found[2] for found in names if found}
    assert set(begun) == {"1", "2", "3"}
    rows = rows_of(run("generate", PROMPT, *STOP, "-f", "json").out)
    assert {"sink", "answer"} <= {*said}
    assert all(begun[name] in PROMPT for name in begun)
    assert {row["segment"] for row in rows} >= {*begun}


def test_heatmap_and_text_show_the_same_shares(run: Run) -> None:
    found = rows_in(run("generate", PROMPT, *STOP, "-f", "jsonl").out)
    heatmap = run("generate", PROMPT, *STOP, "--view", "heatmap").out
    (line,) = re.findall(r"^Leo \.((?: +(?:\d?\.\d\d|·))+)$", heatmap, re.MULTILINE)
    shown = [0.0 if number == "·" else float(number) for number in line.split()]
    assert shown == pytest.approx([row["share"] for row in found], abs=0.006)
    text = run("generate", PROMPT, *STOP, "--view", "text", "--rows", "token").out
    assert "Leo attends to Leo 0.9" in text
    assert "Anna cleaned the floor" in text


def test_python_gives_what_the_command_gives(run: Run) -> None:
    answer = attnviz.generate(PROMPT, stop=["."], max_new_tokens=6)
    assert answer.text.split() == ["Leo", "."]
    written = rows_in(run("generate", PROMPT, *STOP, "-f", "jsonl").out)
    assert [row["share"] for row in answer.shares()] == pytest.approx([r["share"] for r in written])
    assert answer.capture.heads == (Head(4, 0),)
    assert answer.check().effects[0].change < -1
    assert repr(answer).startswith("<AttentionAnswer builtin, 2 tokens, L4H0")
    documents = {"letter": "Tom was stabbed by Leo .", "diary": "Anna cleaned the floor ."}
    asked = attnviz.generate("the murderer was", docs=documents, target=" Leo")
    assert [row["segment"] for row in asked.shares()][1:4] == ["letter", "diary", "question"]


def test_of_many_heads_joined_rows_alone_are_kept_until_each_head_is_asked_for(
    gpt2_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[run_module.KeepRows]()

    @dataclass
    class Counted(run_module.KeepRows):
        def __post_init__(self) -> None:
            made.append(self)

    monkeypatch.setattr(run_module, "KeepRows", Counted)
    model, asked = attnviz.load_model(str(gpt2_copy)), {"max_new_tokens": 3}
    whole = attnviz.generate("the cat sat", model, **asked)
    heads = len(whole.capture.record.heads)
    assert [keep.how for keep in made] == [None]  # few weights: each head's rows are there
    monkeypatch.setattr(answers, "APART", 10)
    found = attnviz.generate("the cat sat", model, **asked)
    sizes = [sum(row.size for row in keep.rows) for keep in made]
    assert sizes[0] == heads * sizes[1] > sizes[1]
    joined = [[row["share"] for row in each.shares()] for each in (found, whole)]
    np.testing.assert_allclose(*joined, atol=1e-6)
    assert len(made) == 2  # sentences need no other rows
    for head in found.capture.record.heads:
        both = [each.capture.record.weights(head) for each in (found, whole)]
        np.testing.assert_allclose(*both, atol=1e-6)
    of_heads = [each.shares("head") for each in (found, whole)]
    assert [row["head"] for row in of_heads[0]] == [row["head"] for row in of_heads[1]]
    shares = [[row["share"] for row in rows] for rows in of_heads]
    np.testing.assert_allclose(*shares, atol=1e-6)
    assert len(made) == 3  # read again, once
    attnviz.generate("the cat sat", model, heads="L0H0,L0H1", **asked)
    assert made[-1].how is None  # heads that were chosen are kept


def test_a_row_for_each_head_has_its_shares_and_its_lookback_ratio(run: Run) -> None:
    options = ("generate", PROMPT, "--max-new-tokens", "5", "--head", "all", "--rows", "head")
    found = rows_in(run(*options, "-f", "jsonl").out)
    answer = attnviz.generate(PROMPT, max_new_tokens=5, heads="all")
    assert {head_of(row) for row in found} == {str(head) for head in HEADS}
    assert found == answer.shares("head")
    whole = attnviz.capture(answer.capture.text)  # a run of its own over prompt and answer
    n, new = len(whole.tokens) - len(answer.tokens), len(answer.tokens)
    for head in HEADS:
        pattern = whole.pattern(*head).astype(np.float64)
        ratios = []
        for position in range(n, n + new - 1):  # predicts the next one
            prompt, so_far = pattern[position, :n], pattern[position, n : position + 1]
            ratios.append(prompt.mean() / (prompt.mean() + so_far.mean()))
        (told,) = {row["lookback"] for row in found if head_of(row) == str(head)}
        assert told == pytest.approx(np.mean(ratios), abs=1e-4)
    assert "lookback" in run(*options).out
    one = rows_in(run("generate", PROMPT, "--target", " Leo", "--rows", "head", "-f", "jsonl").out)
    assert one[0]["lookback"] is None


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_rows_of_a_stream_wait_for_characters_of_several_tokens(run: Run, unit: str) -> None:
    options = ("generate", "你好。世界！ the murderer was", "--max-new-tokens", "9", "--rows", unit)
    assert rows_in(run(*options, "-f", "jsonl").out) == rows_of(run(*options, "-f", "json").out)


def test_an_answer_that_does_not_fit_is_refused_with_both_lengths(run: Run) -> None:
    ended = run("generate", PROMPT, "--target", "a b " * 200)
    assert ended.status is ExitStatus.INPUT
    assert (
        "the prompt has 15 tokens and the answer 400, but the model takes at most 256" in ended.err
    )


def test_the_largest_weights_of_several_heads_are_scaled_to_sum_to_1(run: Run) -> None:
    found = rows_in(
        run("generate", PROMPT, *STOP, "--head", "all", "--reduce", "max", "-f", "jsonl").out
    )
    assert sum(float(str(row["share"])) for row in found) == pytest.approx(1, abs=1e-5)
    assert (
        "on a single head" in run("generate", PROMPT, "--reduce", "max").err
    )  # one retrieval head


def test_a_segment_that_was_cut_away_is_not_deleted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_OWN", 16)
    prompt = "a door . " + ("the cat sat on the mat " * 21 + ". ") * 2 + "the murderer was"
    options = ("--max-new-tokens", "2", "--truncate", "left", "--check", "-f", "jsonl")
    ended = run("generate", prompt, *options)
    assert "tokens are left out to fit the model's context" in ended.err
    found = rows_in(ended.out)
    read = {row["segment"] for row in found if row["change"] is not None}
    assert read
    assert "1" not in read


def test_what_is_wrong_with_one_line_is_said_of_it_alone(run: Run) -> None:
    lines = b"the murderer was Anna . the\nb\nthe murderer . a\n"
    ended = run("generate", "--lines", "--segment", "a=/murderer/", *STOP, "-f", "csv", stdin=lines)
    assert ended.status is ExitStatus.INPUT
    assert "line 2: --segment 'a=/murderer/' matches nothing" in ended.err
    assert {line.split(",")[0] for line in ended.out.splitlines()[1:]} == {"1", "3"}


def test_names_of_other_columns_are_no_segments(run: Run, tmp_path: Path) -> None:
    assert "'sink' is taken" in run("generate", PROMPT, "--segment", "sink=0:4").err
    (tmp_path / "sink.txt").write_text("Tom was stabbed by Leo .")
    (tmp_path / "empty.txt").write_text(" \n")
    ended = run(
        "generate", "the murderer was", "--doc", str(tmp_path / "sink.txt"), *STOP, "-f", "jsonl"
    )
    assert [row["segment"] for row in rows_in(ended.out)][:2] == ["sink", "sink 1"]
    ended = run("generate", "the murderer was", "--doc", str(tmp_path / "empty.txt"))
    assert ended.status is ExitStatus.INPUT
    assert "the document 'empty'" in ended.err


def test_a_saved_answer_cannot_be_rolled_out(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "answer.npz"
    run("generate", PROMPT, *STOP, "--head", "all", "-o", str(saved))
    ended = run("show", str(saved), "--rollout")
    assert ended.status is ExitStatus.USAGE
    assert "cannot be rolled out" in ended.err


def test_the_built_in_model_ends_after_its_sentence_unless_told_otherwise(run: Run) -> None:
    by_itself = run("generate", PROMPT, "--rows", "token", "-f", "csv").out
    assert by_itself == run("generate", PROMPT, *STOP, "--rows", "token", "-f", "csv").out
    longer = run("generate", PROMPT, "--stop", "zebra", "--max-new-tokens", "5", "-f", "csv").out
    assert longer != by_itself


def test_an_answer_that_fills_the_context_is_noted(run: Run) -> None:
    long = "the cat sat . " * 60
    ended = run("generate", long, "--stop", "zebra", "--bos")
    assert "the model's context is full" in ended.err
    asked_for = run("generate", long, "--stop", "zebra", "--max-new-tokens", "3")
    assert "context" not in asked_for.err


def test_a_line_without_a_segment_to_delete_is_left_out(run: Run) -> None:
    prompts = f"{PROMPT}\nthe cat\n"
    ended = run("generate", "-", "--lines", "--check", "-f", "jsonl", stdin=prompts.encode())
    assert ended.status is ExitStatus.INPUT
    assert {row["line"] for row in rows_in(ended.out)} == {1}
    assert "line 2: --check deletes segments before the last one" in ended.err


def test_a_saved_answer_of_one_head_is_shown_without_a_choice(run: Run, tmp_path: Path) -> None:
    run("generate", PROMPT, *STOP, "-o", str(tmp_path / "a.npz"))
    out = run("show", str(tmp_path / "a.npz"), columns=200).out
    assert out.startswith("L4H0: Leo → Leo#1 ")
    assert "chosen" not in out


def test_the_whole_answer_is_told(run: Run) -> None:
    out = run("generate", PROMPT, "--target", "Leo who was never seen in the garden again .").out
    assert "“Leo who was never seen in the garden again .”" in out
    narrow = run("generate", PROMPT, "--target", "Leo who was never seen again .", "--width", "40")
    assert " 1 " in narrow.out  # a long row leaves room for segments


def test_what_is_not_deleted_is_named_and_nothing_false_is_said_of_the_others(run: Run) -> None:
    out = on_one_line(run("generate", PROMPT, "--segment", "x=/stabbed/", "--check").out)
    assert "was not deleted, as it asks for the answer" in out
    assert "has the most attention" not in out


def test_a_segment_quotes_what_is_counted_for_it(run: Run) -> None:
    prompt = "the count was killed by Clara . therefore the murderer was"
    out = run("generate", prompt, "--segment", "who=/the/").out
    assert "who  the … therefore the" in out
    ended = run("generate", prompt, "--segment", "x=/lara/")
    assert ended.status is ExitStatus.INPUT
    assert "no token begins in the segment 'x'" in ended.err


def test_what_is_cut_away_makes_room_for_the_answer(run: Run) -> None:
    long = "the cat sat on the mat . " * 80
    options = ("generate", long, "--truncate", "left", "--stop", "zebra")
    found = rows_in(run(*options, "-f", "jsonl").out)
    assert "80" in {row["segment"] for row in found}
    assert "1" not in {row["segment"] for row in found}  # it was not read
    out = run(*options).out
    assert "192 prompt tokens, 64 new" in out


def test_a_saved_answer_begins_with_the_head_that_copies(run: Run, tmp_path: Path) -> None:
    run("generate", PROMPT, *STOP, "--head", "all", "-o", str(tmp_path / "a.npz"))
    out = run("show", str(tmp_path / "a.npz"), columns=200).out
    assert "Leo → Leo#1 ." in out.splitlines()[0]
    refused = run("heads", str(tmp_path / "a.npz"))
    assert "holds only the rows of an answer" in refused.err


def test_rows_of_heads_are_called_heads(run: Run) -> None:
    out = run("generate", PROMPT, *STOP, "--rows", "head", "--view", "heatmap", columns=200).out
    assert "rows are heads, columns are segments" in out


def test_a_documents_last_line_end_belongs_to_no_part() -> None:
    made = with_documents("q", [Document("a", "one .\n"), Document("b", "two .\r\n\n")])
    assert made.text == "one .\n\ntwo .\n\nq"


def test_a_check_says_that_the_sink_went_with_the_first_segment(run: Run) -> None:
    text = "it ran . the creature was red . the dog was"
    said = "the first token was deleted, the sink, as there is no BOS"
    assert said in on_one_line(run("generate", text, "--check", "--no-bos").out)
    assert said not in on_one_line(run("generate", text, "--check", "--bos").out)


def test_a_long_prompt_is_quoted_up_to_a_word() -> None:
    assert beginning("word " * 40).endswith("word…")
    assert len(beginning("x" * 200)) == 80
