"""Answers about images: each image is one segment, and what words attended to is laid over it."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

import attnviz
from attnviz.errors import AttnvizError, ExitStatus
from tests.conftest import Run, loaded_once, slow
from tests.reading import rows_in
from tests.vision.zoo import processed, processor, species

QUESTION = "What is it? Name it."


@dataclass(frozen=True)
class Folder:
    """A tiny vision-language model, an image beside it, and both as transformers reads them."""

    path: Path
    image: Path
    place: str

    @property
    def asked(self) -> tuple[str, ...]:
        return QUESTION, "-m", str(self.path), "--image", str(self.image)

    def theirs(self, chat: Sequence[Any]) -> tuple[Any, dict[str, torch.Tensor]]:
        """The model, and what its own processor makes of a chat about the image."""
        model = AutoModelForImageTextToText.from_pretrained(self.path, attn_implementation="eager")
        process, image = processor(self.path), Image.open(self.image).convert("RGB")
        text = process.apply_chat_template(chat, add_generation_prompt=True)
        return model.eval(), processed(process, text, image)


@pytest.fixture(scope="module", params=["llava", slow("qwen2_5_vl")])
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    sighted = species(request.param)
    made = tmp_path_factory.mktemp("images")
    image = made / "a.png"
    pixels = np.random.default_rng(0).integers(0, 256, (70, 150, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(image)
    return Folder(loaded_once(sighted.make(made / "model")), image, sighted.place)


@pytest.fixture
def llava(llava_folder: Path, tmp_path: Path) -> Folder:
    image = tmp_path / "a.png"
    Image.new("RGB", (40, 30), "red").save(image)
    return Folder(llava_folder, image, "<image>")


def test_the_answer_and_its_shares_are_those_of_transformers(folder: Folder) -> None:
    answer = attnviz.generate(QUESTION, str(folder.path), image=folder.image, max_new_tokens=5)
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    model, inputs = folder.theirs([{"role": "user", "content": content}])
    n = inputs["input_ids"].shape[1]
    written = model.generate(**inputs, do_sample=False, max_new_tokens=5)
    assert [token.id for token in answer.tokens] == written[0, n:].tolist()
    ids = written[:, :-1]
    kinds = {
        name: torch.nn.functional.pad(inputs[name], (0, ids.shape[1] - n))
        for name in ("mm_token_type_ids",)
        if name in inputs
    }
    more = {**inputs, **kinds, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        attentions = model(**more, output_attentions=True).attentions
    rows = torch.stack(attentions).mean(dim=(0, 1, 2))[n - 1 :]  # (new, keys)
    of_image = ids[0] == getattr(model.config, "image_token_id", -1)
    share = rows[:, of_image].sum(dim=1).tolist()
    found = answer.shares("token")
    assert [row["share"] for row in found if row["segment"] == "image"] == pytest.approx(
        share, abs=1e-5
    )
    for number in range(1, 6):
        assert sum(float(str(r["share"])) for r in found if r["row"] == number) == pytest.approx(1)


def test_each_image_is_one_segment_between_those_of_the_text(run: Run, folder: Folder) -> None:
    found = rows_in(run("generate", *folder.asked, "--target", " a dog", "-f", "jsonl").out)
    named = [row["segment"] for row in found if row["row"] == 1]
    assert named == ["sink", "template", "image", "1", "2", "answer"]
    placed = "Is <image> as <image>?", *folder.asked[1:], "--image", str(folder.image)
    found = rows_in(run("generate", *placed, "--target", " a dog", "-f", "jsonl").out)
    named = [row["segment"] for row in found if row["row"] == 1]
    assert named == ["sink", "1", "image 1", "image 2", "answer"]


def test_images_stand_in_the_messages_of_a_chat(run: Run, folder: Folder, tmp_path: Path) -> None:
    text, answered = {"type": "text", "text": "And this?"}, {"role": "assistant", "content": "A."}
    first = {"role": "user", "content": [{"type": "image", "path": str(folder.image)}, text]}
    second = {"role": "user", "content": [{"type": "image"}, text]}
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([first, answered, second]))
    asked = ("generate", "--chat", str(chat), *folder.asked[1:], "--target", " a dog")
    found = rows_in(run(*asked, "-f", "jsonl").out)
    named = {row["segment"] for row in found}
    assert named >= {"image 1", "image 2", "user 1", "user 2", "assistant", "template"}
    same = [
        first,
        answered,
        {**second, "content": [{"type": "image", "url": str(folder.image)}, text]},
    ]
    answer = attnviz.generate(same, str(folder.path), target=" a dog")
    assert [row["share"] for row in answer.shares()] == pytest.approx(
        [row["share"] for row in found]
    )
    assert same[0]["content"][0]["path"] == str(folder.image)  # what was given stays as it was


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "image", "url": "https://a.org/a.png"}, "is not the path of a file"),
        ({"type": "image", "image": "data:image/png;base64,AAAA"}, "is not the path of a file"),
        ({"type": "image", "image": "A" * 100_000}, "is not the path of a file"),
        ({"type": "image", "path": "none.png"}, "does not exist"),
        ({"type": "image", "path": 7}, "is not a file"),
        (
            {"type": "image"},
            "has 1 place for an image without a path, but --image is given 0 times",
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://a.org"}},
            "an image_url, which is not read",
        ),
        ({"type": "video", "path": "a.mp4"}, "neither text nor image"),
    ],
)
def test_a_part_that_is_no_image_here_is_refused(
    run: Run, llava: Folder, part: dict[str, Any], said: str
) -> None:
    chat = llava.image.with_suffix(".json")
    content = [part, {"type": "text", "text": "What?"}]
    chat.write_text(json.dumps([{"role": "user", "content": content}]))
    ended = run("generate", "--chat", str(chat), "-m", str(llava.path))
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 300


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--truncate", "left"), "--truncate cannot cut an image"),
        (("--view", "text", "-o", "a.png"), "cannot be a picture"),
        (("--view", "image", "-f", "jsonl"), "does nothing for jsonl"),
        (("--view", "image", "--rows", "head"), "leave it or --rows head"),
        (("--view", "image", "--contribution"), "contributions have a sign"),
    ],
)
def test_what_says_nothing_of_images_is_refused(
    run: Run, llava: Folder, options: tuple[str, ...], said: str
) -> None:
    ended = run("generate", *llava.asked, *options)
    assert ended.status is ExitStatus.USAGE
    assert said in ended.err


def test_a_model_of_text_takes_no_image(llava: Folder) -> None:
    with pytest.raises(AttnvizError, match="reads no images"):
        attnviz.generate("the dog was", image=llava.image)
    with pytest.raises(AttnvizError, match="there is no image"):
        attnviz.generate("the dog was", target=" red").figure(view="image")


def test_a_template_that_leaves_images_out_is_refused(llava: Folder, tmp_path: Path) -> None:
    llava = replace(llava, path=shutil.copytree(llava.path, tmp_path / "model"))
    template = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    (llava.path / "chat_template.jinja").write_text(template)
    with pytest.raises(AttnvizError, match="makes 0 places for 1 image"):
        attnviz.generate(QUESTION, str(llava.path), image=llava.image)
    options = {"image": llava.image, "raw": True, "max_new_tokens": 1}
    found = attnviz.generate("What?", str(llava.path), **options).shares()
    assert [row["segment"] for row in found] == ["sink", "image", "question", "answer"]


def test_documents_and_an_image_stand_before_the_question(llava: Folder) -> None:
    for raw in (False, True):
        answer = attnviz.generate(
            "What?",
            str(llava.path),
            image=llava.image,
            docs={"image": "it is red .", "b": "it is a dog ."},
            raw=raw,
            max_new_tokens=2,
        )
        named = [row["segment"] for row in answer.shares()]
        expected = ["picture", "image", "b", "question"]
        assert [name for name in named if name in expected] == expected


def test_a_picture_lays_each_word_over_the_image(run: Run, llava: Folder, tmp_path: Path) -> None:
    answer = attnviz.generate(QUESTION, str(llava.path), image=llava.image, target="a red dog")
    figure = answer.figure()
    titles = [text.get_text() for axes in figure.axes for text in axes.texts]
    words = [row["text"] for row in answer.shares("word") if row["segment"] == "image"]
    assert [title.split(":")[0] for title in titles if "on the image" in title] == words
    over, plain = tmp_path / "over.png", tmp_path / "plain.png"
    target = ("--target", "a red dog")
    assert run("generate", *llava.asked, *target, "-o", str(over)).status is ExitStatus.OK
    assert (
        run("generate", *llava.asked, *target, "--view", "heatmap", "-o", str(plain)).status
        is ExitStatus.OK
    )
    assert over.read_bytes() != plain.read_bytes()
    shown = run("generate", *llava.asked, *target, "--view", "image").out
    assert all(f"{word}: 0." in shown for word in words)


def test_an_answer_is_saved_with_its_images(llava: Folder, tmp_path: Path) -> None:
    answer = attnviz.generate(QUESTION, str(llava.path), image=llava.image, target="a red dog")
    answer.save(file := tmp_path / "answer.npz")
    assert attnviz.load(file).record.images[0].raw.size == (40, 30)


def test_regions_made_grey_are_what_transformers_computes(folder: Folder) -> None:
    target = " a dog"
    answer = attnviz.generate(QUESTION, str(folder.path), image=folder.image, target=target)
    check = answer.check()
    pixels = np.asarray(Image.open(folder.image).convert("RGB"))
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    new = [token.id for token in answer.tokens]

    def log_probability(pixels: np.ndarray[Any, Any]) -> float:
        Image.fromarray(pixels).save(folder.image.with_name("grey.png"))
        other = replace(folder, image=folder.image.with_name("grey.png"))
        model, inputs = other.theirs([{"role": "user", "content": content}])
        ids = torch.cat([inputs["input_ids"], torch.tensor([new])], dim=1)
        kinds = {
            name: torch.nn.functional.pad(inputs[name], (0, len(new)))
            for name in ("mm_token_type_ids",)
            if name in inputs
        }
        more = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            logits = model(**{**inputs, **kinds, **more}).logits[0, -len(new) - 1 : -1]
        return float(logits.log_softmax(-1)[torch.arange(len(new)), torch.tensor(new)].sum())

    whole, mean = log_probability(pixels), pixels.mean(axis=(0, 1)).round()
    assert check.log_probability == pytest.approx(whole, abs=1e-3)
    x0, y0, x1, y1 = check.occlusions[6].box
    grey = pixels.copy()
    grey[y0:y1, x0:x1] = mean
    assert check.occlusions[6].change == pytest.approx(log_probability(grey) - whole, abs=1e-3)
    effects = {each.segment: each.change for each in check.effects}
    all_grey = np.broadcast_to(mean.astype(np.uint8), pixels.shape).copy()
    assert effects["image"] == pytest.approx(log_probability(all_grey) - whole, abs=1e-3)
    assert [*effects] == ["1", "2", "image"]


def test_regions_lie_side_by_side_over_what_the_model_saw(folder: Folder) -> None:
    answer = attnviz.generate("What?", str(folder.path), image=folder.image, target=" a dog")
    found, image = answer.check(), answer.capture.record.images[0]
    seen = np.zeros(image.raw.pixels.shape[:2], int)
    for each in found.occlusions:
        x0, y0, x1, y1 = each.box
        seen[y0:y1, x0:x1] += 1
    assert np.array_equal(seen, image.shown())
    column = sum(float(str(r["share"])) for r in answer.shares() if r["segment"] == "image")
    assert sum(each.share or 0 for each in found.occlusions) == pytest.approx(column, abs=0.02)


@pytest.mark.slow
def test_regions_are_rows_and_a_map_with_the_strongest_named(run: Run, llava: Folder) -> None:
    asked = ("generate", *llava.asked, "--image", str(llava.image), "--target", "a dog", "--check")
    ended = run(*asked, "--rows", "word", "-f", "jsonl")
    found = rows_in(ended.out)
    assert "in 34 runs of their own" in ended.err
    regions = [row for row in found if row["part"] == "region"]
    assert len(regions) == 2 * 16 * len({row["row"] for row in found})
    whole = [row for row in found if row["part"] == "segment" and row["segment"] == "image 2"]
    for number in (1, 2):
        own = [row for row in regions if row["row"] == number and row["image"] == 2]
        share = sum(float(str(row["share"])) for row in own)
        assert share == pytest.approx(float(str(whole[number - 1]["share"])), abs=0.01)
        assert whole[number - 1]["change"] is not None
    shown = run(*asked, "--width", "60").out
    assert "image 1: change (nats) where a region is made grey" in shown
    assert "of 16 regions" in shown or "no region of image 1" in shown
    header = run(*asked, "-f", "csv").out.splitlines()
    assert {line.count(",") for line in header} == {header[0].count(",")}


@pytest.mark.parametrize("name", ["paligemma", "mllama", "idefics3"])
def test_what_a_processor_writes_beside_the_text_moves_no_segment(
    tmp_path: Path, name: str
) -> None:
    sighted, image = species(name), tmp_path / "a.png"
    Image.fromarray(np.arange(120 * 90 * 3, dtype=np.uint8).reshape(90, 120, 3)).save(image)
    folder = Folder(sighted.make(tmp_path / "model"), image, sighted.place)
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    model, inputs = folder.theirs([{"role": "user", "content": content}])
    answer = attnviz.generate(QUESTION, str(folder.path), image=image, max_new_tokens=3)
    written = model.generate(**inputs, do_sample=False, max_new_tokens=3)
    n = inputs["input_ids"].shape[1]
    assert [token.id for token in answer.tokens] == written[0, n : n + 3].tolist()
    capture = answer.capture.record
    texts = {
        each.name: "".join(capture.text[a:b] for a, b in each.slices) for each in capture.segments
    }
    assert (texts["1"], texts["2"].strip()) == ("What is it?", "Name it.")


def test_links_and_texts_have_an_image_as_one_word(run: Run, llava: Folder) -> None:
    asked = ("generate", *llava.asked, "--target", "a dog")
    links = run(*asked, "--view", "links").out
    assert "→ image 0." in links
    text = run(*asked, "--view", "text").out
    assert " image What " in text.replace("␣", " ")
    for out in (links, text):
        assert "@r" not in out
        assert "<image>" not in out


def test_the_page_has_the_regions_and_what_a_grey_image_costs(folder: Folder) -> None:
    answer = attnviz.generate(QUESTION, str(folder.path), image=folder.image, target=" a dog")
    found, page = answer.check(), answer.page()
    image = next(each for each in found.effects if each.segment == "image")

    def number(change: float) -> str:
        return f"{change:+z.2f}".replace("-", "−")

    assert f'data-whole="{number(image.change)}"' in page
    assert "image: regions made grey" in page
    assert all(f"<td>{number(each.change)}</td>" in page for each in found.occlusions)
    assert "all 1 document" not in page


@pytest.mark.parametrize(("name", "said"), [("mllama", 1), ("llava", 0)])
def test_it_is_said_that_cross_attention_to_images_is_not_counted(
    run: Run, tmp_path: Path, name: str, said: int
) -> None:
    image = tmp_path / "a.png"
    Image.new("RGB", (40, 30), "red").save(image)
    model = species(name).make(tmp_path / "model")
    asked = ("-m", str(model), "--image", str(image), "--target", " a dog")
    note = (
        "note: the model reads its images in layers of cross-attention, beside the tokens of the "
        "text; counted here is the attention to the text and to their one token\n"
    )
    assert run("generate", QUESTION, *asked).err.count(note) == said


@pytest.mark.parametrize(
    ("model", "said", "status"),
    [
        ("builtin", "builtin reads no images; leave --image out", ExitStatus.USAGE),
        ("shapes", "the text is empty; give at least one word.", ExitStatus.INPUT),
        ("shapes-vit", "shapes-vit reads only images, but this", ExitStatus.USAGE),
    ],
)
def test_an_image_without_a_question_is_refused(
    run: Run, model: str, said: str, status: ExitStatus
) -> None:
    for documents in ((), ("--doc", "sample:letter")):
        ended = run("generate", "--image", "sample:shapes-1", "-m", model, *documents)
        assert ended.status is status
        assert ended.err.startswith(f"attnviz: {said}")
