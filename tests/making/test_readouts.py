"""Read-outs: their cases say what the text says, and a map learns what there is to learn."""

import itertools
from collections import Counter

import pytest
import torch

from attnviz.records.heads import NONE, Head
from making.readouts import COLOURS, NAMES, QUESTIONS, Case, Examples, Question
from making.world.lexicon import reserved
from making.world.senses import senses
from making.world.text import Text

HERE = Head(0, 0)
BY_NAME = {question.name: question for question in QUESTIONS}


def some(question: Question, *, held_out: bool, count: int = 300) -> list[Case]:
    return list(itertools.islice(question.cases(held_out), count))


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_case_says_what_its_text_says(question: Question, held_out: bool) -> None:
    for case in some(question, held_out=held_out):
        links = [link for link in case.text.links if link.query == case.word]
        keys = {case.text.words[key].lower() for link in links for key in link.keys}
        if question.name == "sense":
            assert case.says in senses()[case.text.words[case.word].lower()]
        elif case.says == NONE:
            assert not keys & set(COLOURS if question.name == "colour" else ()), case.text.source
        else:
            assert case.says.lower() in keys, case.text.source


def test_held_out_pairs_stay_out_of_training() -> None:
    for held_out in (False, True):
        for case in some(BY_NAME["colour"], held_out=held_out):
            if case.says != NONE:
                assert reserved(case.says, case.text.words[case.word]) == held_out


def test_no_colour_is_as_frequent_as_each_colour() -> None:
    counts = Counter(case.says for case in some(BY_NAME["colour"], held_out=False, count=1100))
    assert counts[NONE] == pytest.approx(100, abs=2)


def test_others_of_the_same_list_stand_in_the_text_of_a_referent() -> None:
    names = {name for names in NAMES.values() for name in names}
    cases = some(BY_NAME["referent"], held_out=False)
    rivals = [len(names & set(case.text.words)) for case in cases]
    assert sum(count > 1 for count in rivals) > len(cases) / 5


def examples(vectors: torch.Tensor, says: torch.Tensor) -> Examples:
    classes = ("a", "b", "c")
    text = Text("kind", ("word",))
    cases = [Case(text, 0, classes[each]) for each in says.tolist()]
    return Examples(cases, classes, says, {(HERE, "added"): vectors})


def test_a_map_learns_what_is_there_and_stays_at_chance_where_there_is_nothing() -> None:
    draw = torch.Generator().manual_seed(0)
    says = torch.randint(3, (900,), generator=draw)
    noise = torch.randn(900, 12, generator=draw)
    carried = noise.clone()
    carried[:, :3] += 6 * torch.nn.functional.one_hot(says, 3)
    for vectors, low, high in ((carried, 0.97, 1.0), (noise, 0.26, 0.41)):
        learned = examples(vectors[:600], says[:600])
        measured = examples(vectors[600:], says[600:])
        right = measured.right(HERE, "added", learned.fit(HERE, "added"))
        assert low <= right <= high
        assert learned.chance(measured) == pytest.approx(1 / 3, abs=0.06)
