"""Lines that name an image beside their text: each is read with its own, by every command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import rows_in

PICTURE = Path("docs/images/shapes-1.png")
TEXT = "what is left of the red circle?"
MISSING = {"text": TEXT, "image": "none.png"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A picture and the same mirrored, in a folder that the lines name."""
    (tmp_path / "pictures").mkdir()
    with Image.open(PICTURE) as opened:
        opened.save(tmp_path / "pictures" / "a.png")
        ImageOps.mirror(opened.convert("RGB")).save(tmp_path / "pictures" / "b.png")
    return tmp_path


def written(folder: Path, *lines: dict[str, Any]) -> tuple[str, ...]:
    file = folder / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "--file", str(file), "-m", "shapes"


def both(name: str = "text") -> Sequence[dict[str, Any]]:
    return ({name: TEXT, "image": "pictures/a.png"}, {name: TEXT, "images": ["pictures/b.png"]})


def test_show_attends_to_the_image_of_each_line_and_names_a_bad_one(run: Run, folder: Path) -> None:
    asked = ("--head", "L1H0", "--query", "circle", "-f", "jsonl")
    ended = run(
        "show", "--lines", *written(folder, both()[0], MISSING, both("question")[1]), *asked
    )
    assert ended.status is ExitStatus.INPUT
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("attnviz: line 2: the image")
    for line, name in ((1, "a"), (3, "b")):
        image = folder / "pictures" / f"{name}.png"
        captured = attnviz.capture(TEXT, "shapes", image=image, heads="L1H0")
        own = [row for row in rows_in(ended.out) if row["line"] == line]
        found = {row["key"]: row["weight"] for row in own}
        expected = captured.pattern(1, 0)[own[0]["query"]]
        assert found == pytest.approx(dict(enumerate(expected[: len(found)])), abs=1e-6)


def test_pictures_of_lines_show_their_images(run: Run, folder: Path) -> None:
    asked = ("--head", "L1H0", "--query", "circle", "-o", str(folder / "{line}.png"))
    assert run("show", "--lines", *written(folder, *both()), *asked).status is ExitStatus.OK
    first, second = (Image.open(folder / f"{line}.png").convert("RGB") for line in (1, 2))
    assert first.tobytes() != second.tobytes()


def test_a_table_of_cells_refuses_lines_without_an_image_among_those_with_one(
    run: Run, folder: Path
) -> None:
    ended = run("show", "--lines", *written(folder, both()[0], {"text": TEXT}), "-f", "csv")
    assert ended.err.startswith("attnviz: line 2: texts with images and without have other columns")
    assert len({line.count(",") for line in ended.out.splitlines()}) == 1


def test_predictions_are_those_of_each_image(run: Run, folder: Path) -> None:
    asked = ("--top", "1", "-f", "jsonl")
    rows = rows_in(run("predict", "--lines", *written(folder, *both()), *asked).out)
    alone = [
        attnviz.predict(TEXT, "shapes", image=folder / "pictures" / name, top=1).rows[0]
        for name in ("a.png", "b.png")
    ]
    assert [row["token"] for row in rows[:2]] == [row["token"] for row in alone]
    assert rows[0]["probability"] != rows[1]["probability"]


def test_heads_are_labelled_on_the_image_of_their_line(run: Run, folder: Path) -> None:
    links = [{**line, "links": [["circle", ["@r5c4", "@r6c4"]]]} for line in both()]
    asked = written(folder, *links)[1:]
    rows = rows_in(run("heads", "--labels", *asked, "-f", "jsonl").out)
    masses = []
    for name in ("a.png", "b.png"):
        captured = attnviz.capture(TEXT, "shapes", image=folder / "pictures" / name, heads="L1H0")
        tokens = captured.record.key_tokens
        keys = [t.index for t in tokens if t.label in ("@r5c4", "@r6c4")]
        masses.append(captured.pattern(1, 0)[-2, keys].sum())  # before the question mark
    mass = next(row["mass"] for row in rows if (row["layer"], row["head"]) == (1, 0))
    assert mass == pytest.approx(sum(masses) / 2, abs=1e-5)


def test_answers_are_about_the_image_of_each_line(run: Run, folder: Path) -> None:
    lines = (*both("question"), MISSING)
    ended = run("generate", *written(folder, *lines), "--head", "L3H0", "-f", "jsonl")
    assert ended.status is ExitStatus.INPUT
    assert "attnviz: line 3: the image" in ended.err
    told = {row["line"]: row["text"] for row in rows_in(ended.out)}
    for line, name in ((1, "a.png"), (2, "b.png")):
        answer = attnviz.generate(TEXT, "shapes", image=folder / "pictures" / name, heads="L3H0")
        assert told[line] == answer.text.strip()
    about = {"question": TEXT, "image": folder / "pictures" / "a.png"}
    assert attnviz.generate(about, "shapes", heads="L3H0").text.strip() == told[1]


def test_a_resumed_run_sees_that_an_image_was_changed(run: Run, folder: Path) -> None:
    asked = (*written(folder, *both("question")), "--resume", "-o", str(folder / "results.jsonl"))
    assert run("generate", *asked).status is ExitStatus.OK
    assert run("generate", *asked).status is ExitStatus.OK
    (folder / "pictures" / "a.png").write_bytes((folder / "pictures" / "b.png").read_bytes())
    assert "line 1 is not the one that" in run("generate", *asked).err


def test_a_resumed_run_sees_that_the_image_of_all_lines_was_changed(run: Run, folder: Path) -> None:
    image = folder / "pictures" / "a.png"
    shared = ("--image", str(image), "--resume", "-o", str(folder / "results.jsonl"))
    asked = (*written(folder, *[{"question": TEXT}] * 2), *shared)
    assert run("generate", *asked).status is ExitStatus.OK
    assert run("generate", *asked).status is ExitStatus.OK
    image.write_bytes((folder / "pictures" / "b.png").read_bytes())
    assert "line 1 is not the one that" in run("generate", *asked).err


@pytest.mark.parametrize("command", ["predict", "show"])
def test_a_line_without_an_image_keeps_that_of_all(run: Run, folder: Path, command: str) -> None:
    shared, own = (str(folder / "pictures" / name) for name in ("a.png", "b.png"))
    lines = written(folder, {"text": TEXT}, {"text": TEXT, "image": own})
    asked = ("-m", "shapes", "-f", "jsonl", *(["--head", "L1H0"] * (command == "show")))
    rows = rows_in(run(command, "--lines", *lines, "--image", shared, *asked).out)
    for line, image in ((1, shared), (2, own)):
        alone = rows_in(run(command, TEXT, "--image", image, *asked).out)
        assert [row for row in rows if row["line"] == line] == [
            {**row, "line": line} for row in alone
        ]


def test_the_images_of_a_chat_stand_beside_its_file(run: Run, folder: Path) -> None:
    parts = [{"type": "image", "path": "pictures/a.png"}, {"type": "text", "text": TEXT}]
    (folder / "chat.json").write_text(json.dumps([{"role": "user", "content": parts}]))
    ended = run("generate", "--chat", str(folder / "chat.json"), "-m", "shapes", "-f", "json")
    assert ended.status is ExitStatus.OK, ended.err


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ({"image": "pictures/a.png"}, "there is no text with the image"),
        ({"text": TEXT, "image": "https://x.org/a.png"}, "is not the path of a file"),
        ({"text": TEXT, "image": 3}, "an image is not a file"),
        ({"text": TEXT, "imge": "pictures/a.png"}, "'imge' is not a field; write 'image'"),
        ({"text": TEXT, "images": "pictures/a.png"}, "the images are not a list"),
        (
            {"text": TEXT, "images": ["pictures/a.png"], "image": "a"},
            "image and images are given",
        ),
        ({"text": "<image> or <image>", "image": "pictures/a.png"}, "has 2 <image> for 1 image"),
    ],
)
def test_a_bad_line_is_refused_alone(
    run: Run, folder: Path, line: dict[str, Any], wrong: str
) -> None:
    ended = run("predict", "--lines", *written(folder, line, both()[0]), "-f", "jsonl")
    assert ended.status is ExitStatus.INPUT
    assert ended.err.startswith("attnviz: line 1: ")
    assert wrong in ended.err
    assert {row["line"] for row in rows_in(ended.out)} >= {2}


def test_a_text_in_braces_is_a_text_where_lines_are_no_json(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text('{"image": 3} is how\n{"image": a red circle\n')
    for command in ("show", "generate"):
        ended = run(command, "--lines", "--file", str(file), "-m", "shapes", "-f", "jsonl")
        assert {row["line"] for row in rows_in(ended.out)} == {1, 2}, ended.err
    file.write_text('{"text": "a red circle", "image": }\n')
    assert "line 1: it is not JSON" in run("show", "--lines", "--file", str(file)).err


@pytest.mark.parametrize("command", ["show", "predict", "generate"])
def test_that_no_line_has_an_image_is_said_once(run: Run, folder: Path, command: str) -> None:
    name = "question" if command == "generate" else "text"
    asked = ("--lines", "-f", "jsonl")
    unseen = written(folder, {name: "what colour"}, {name: "a circle"})
    assert run(command, *unseen, *asked).err.count("reads images too; none was given") == 1
    unseen = written(folder, {name: TEXT}, both(name)[0])
    assert "none was given" not in run(command, *unseen, *asked).err


def test_prompts_of_pairs_refuse_images(run: Run, folder: Path) -> None:
    ended = run("predict", "--pairs", *written(folder, {**both()[0], "answer": "a"})[1:])
    assert "line 1: --pairs cannot read images" in ended.err
