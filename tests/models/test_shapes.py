"""The bundled model of pictures, through transformers alone: its answers, and where it attends."""

import json
import re
from typing import Any

import pytest
import torch
from transformers import LlavaForConditionalGeneration, LlavaProcessor

from attnviz.models.catalog import BUNDLED_SIZES
from attnviz.models.folder.config import folder_sizes
from attnviz.models.folder.files import bundled_folder
from making.shapes.draw import draw, questions, scene

FOLDER = bundled_folder("shapes")
CARD = json.loads((FOLDER / "card.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model() -> Any:
    return LlavaForConditionalGeneration.from_pretrained(FOLDER, attn_implementation="eager")


@pytest.fixture(scope="module")
def reader() -> Any:
    return LlavaProcessor.from_pretrained(FOLDER)


def answers(model: Any, reader: Any, given: Any) -> list[str]:
    written = model.generate(**given, max_new_tokens=32, do_sample=False)
    new = written[:, given["input_ids"].size(1) :]
    return reader.batch_decode(new, skip_special_tokens=True)


def test_it_describes_five_pictures_and_answers_nineteen_of_twenty_questions(
    model: Any, reader: Any
) -> None:
    right: list[bool] = []
    for seed in (f"answered {n}" for n in range(5)):
        asked = questions(scene(seed))
        texts, pictures = [f"<image> {q.text}" for q in asked], [draw(seed)] * len(asked)
        given = reader(text=texts, images=pictures, padding=True, return_tensors="pt")
        described, *others = answers(model, reader, given)
        assert described == asked[0].answer
        right += [q.answer == other for q, other in zip(asked[1:], others, strict=True)]
    assert sum(right) >= 0.95 * len(right) > 40


def test_a_chat_of_two_questions_is_answered(model: Any, reader: Any) -> None:
    seed, chat = "a chat", list[dict[str, Any]]()
    for question in questions(scene(seed))[:2]:
        text = {"type": "text", "text": question.text.capitalize()}
        image = [] if chat else [{"type": "image", "image": draw(seed)}]
        chat.append({"role": "user", "content": [*image, text]})
        given = reader.apply_chat_template(
            chat, tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True
        )
        assert (given["input_ids"] == model.config.text_config.bos_token_id).sum() == 1
        assert answers(model, reader, given) == [question.answer]
        chat.append({"role": "assistant", "content": [{"type": "text", "text": question.answer}]})


def test_its_named_heads_attend_to_the_shape_in_question(model: Any, reader: Any) -> None:
    """The mass of the row, over patches by the share of each that lies in the shape's box."""
    heads = {each["behaviour"]: each["head"] for each in CARD["heads"]}
    masses: dict[str, list[float]] = {name: [] for name in heads}
    for seed in (f"attended {n}" for n in range(40)):
        asked = [q for q in questions(scene(seed)) if q.kind in ("colour", "shape")][:1]
        for question in asked:
            text = f"<image> {question.text}"
            given = reader(text=text, images=draw(seed), return_tensors="pt")
            with torch.inference_mode():
                patterns = model(**given, output_attentions=True).attentions
            *_, mention, last = (i for i, _ in enumerate(given["input_ids"][0]))
            x0, y0, x1, y1 = (8 * side for side in question.named[0].box)
            for name, row in (("mentions", mention), ("answers", last)):
                layer, head = map(int, re.findall(r"\d", heads[name]))
                weights = patterns[layer][0, head, row, 1:65].reshape(8, 8).tolist()
                inside = (
                    weights[y][x]
                    * max(0, min(x + 1, x1) - max(x, x0))
                    * max(0, min(y + 1, y1) - max(y, y0))
                    for y in range(8)
                    for x in range(8)
                )
                masses[name].append(sum(inside))
    for name, each in masses.items():
        assert sum(each) / len(each) >= 0.7, name


def test_its_files_are_small_and_its_sizes_those_of_the_list() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 1_300_000
    assert folder_sizes(FOLDER) == BUNDLED_SIZES["shapes"]


def test_by_its_card_it_answers_and_attends_as_well_as_it_had_to() -> None:
    """One kind of answer misses the bar by one case in 168, as the card tells."""
    figures = {figure["behaviour"]: figure for figure in CARD["figures"]}
    for name in ("mentions", "answers"):
        assert figures.pop(name)["held_out"] >= 0.7
    right = sum(figure["held_out"] * figure["n"] for figure in figures.values())
    assert right >= 0.95 * sum(figure["n"] for figure in figures.values())
    missed = [name for name, figure in figures.items() if figure["held_out"] < figure["bar"]]
    assert missed == ["above"]
