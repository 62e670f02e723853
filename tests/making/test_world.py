"""The world: its ground truth is where it says, and held-out pairs stay out of training."""

import itertools

import pytest

from making.world import reasons
from making.world.contractions import contracted
from making.world.lexicon import groups, plural, reserved, verb_form
from making.world.senses import senses, topics
from making.world.stories import PART, PRONOUN, SLOTS, stories
from making.world.text import Answer, Text, TrueLink, Writer, joined
from making.world.texts import KINDS, texts

COUNT = 200


def some(kind: str | None, *, held_out: bool = False, seed: int = 0) -> list[Text]:
    return list(itertools.islice(texts(seed, kind, held_out=held_out), COUNT))


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_the_source_has_every_word_in_order(kind: str | None) -> None:
    for text in some(kind):
        assert text.source.replace(" ", "") == "".join(text.words)


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_links_look_back_and_answers_are_accepted(kind: str | None) -> None:
    for text in some(kind):
        for link in text.links:
            assert link.keys
            assert max(link.keys) < link.query < len(text.words)
        for answer in text.answers:
            assert text.words[answer.word] in answer.accepted


def test_a_reason_is_about_one_of_the_two_that_were_named() -> None:
    found = some("reasons")
    about = [link for text in found for link in text.links if link.behaviour == "predicates"]
    assert len(about) == len(found)
    for text in found:
        (told,) = [link for link in text.links if link.behaviour == "predicates"]
        word = text.words[told.query].lower()
        of_actor = word in reasons.LIVING
        assert of_actor or word in itertools.chain(*reasons.OF.values())


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("it did not stop", "it did n't stop"),
        ("I can not go", "I can 't go"),
        ("She will not go", "She wo n't go"),
        ("he is late and they are here", "he 's late and they 're here"),
        ("I will , we have , I am old", "I 'll , we 've , I 'm old"),
        ("the king is late , not I", "the king is late , not I"),
        ("here it is .", "here it is ."),  # nobody writes "here it's."
    ],
)
def test_contractions_stand_where_people_write_them(long: str, short: str) -> None:
    text = Text("plain", tuple(long.split()))
    assert contracted(text).words == tuple(short.split())


def test_what_a_text_determines_is_not_contracted() -> None:
    text = Text("plain", ("he", "is", "late"), (), (Answer("x", 1, frozenset({"is"})),))
    assert contracted(text).words == text.words


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_texts(kind: str) -> None:
    assert some(kind) == some(kind)
    assert some(kind) != some(kind, seed=1)


def links(text: Text, behaviour: str) -> list[TrueLink]:
    return [link for link in text.links if link.behaviour == behaviour]


@pytest.mark.parametrize("kind", ["adjectives", "pronouns", "plain"])
def test_adjectives_stand_before_their_noun(kind: str) -> None:
    for text in some(kind):
        for link in links(text, "adjectives"):
            between = text.words[min(link.keys) : link.query]
            others = [w for w in between if w not in {text.words[k] for k in link.keys}]
            modifiers = [w for w in others if w not in (",", "and", "very")]
            assert len(modifiers) <= 1, text.source  # "a long fire drill"


def test_pairs_of_adjective_and_noun_are_new_in_held_out_texts_and_only_there() -> None:
    singular = {plural(n): n for nouns in groups("classes").values() for n in nouns}
    for name in ("more", "rare"):
        singular |= {plural(n): n for nouns in groups(name).values() for n in nouns}
    for held_out in (False, True):
        for text in some("adjectives", held_out=held_out):
            for link in links(text, "adjectives"):
                noun = text.words[link.query].lower()
                nouns = {noun, singular.get(noun, noun)}
                for key in link.keys:
                    pairs = [reserved(text.words[key], each) for each in nouns]
                    assert held_out in pairs, text.source


def test_pairs_of_clue_and_ambiguous_word_are_new_in_held_out_texts_and_only_there() -> None:
    for held_out in (False, True):
        for text in some("senses", held_out=held_out):
            for link in links(text, "senses"):
                for key in link.keys:
                    assert reserved(text.words[key], text.words[link.query]) is held_out


def test_the_clues_of_an_ambiguous_word_belong_to_one_of_its_senses() -> None:
    for text in some("senses"):
        for link in links(text, "senses"):
            clues = {text.words[k].lower() for k in link.keys}
            of_sense = senses()[text.words[link.query].lower()]
            known = [{c.lower() for c in topics()[topic][1]} for topic in of_sense]
            assert any(clues <= each for each in known), text.source


HE = {"he": "he", "him": "he", "his": "he", "she": "she", "her": "she"}


@pytest.mark.parametrize("kind", ["pronouns", "stories"])
def test_a_pronoun_agrees_with_the_name_that_it_stands_for(kind: str) -> None:
    names = groups("names")
    pronouns = dict.fromkeys(names["female"], "she") | dict.fromkeys(names["male"], "he")
    seen = 0
    for text in some(kind):
        for link in links(text, "pronouns"):
            form = HE.get(text.words[link.query].lower())
            known = {pronouns[text.words[k]] for k in link.keys if text.words[k] in pronouns}
            if form and known and "and" not in text.words[min(link.keys) : max(link.keys)]:
                seen += 1
                assert known == {form}, text.source
    assert seen > 20


def test_only_one_name_fits_a_pronoun_that_is_decided() -> None:
    names = groups("names")
    for text in some("pairs"):
        for link in links(text, "pronouns"):
            own = {"he": "male", "she": "female"}.get(text.words[link.query].lower())
            if own is None:
                continue
            before = {w for w in text.words[: link.query] if w in names[own]}
            meant = {text.words[k] for k in link.keys}
            others = names["male" if own == "female" else "female"]
            assert before <= meant | set(others) | set(names["surname"]), text.source


def test_every_story_names_those_whom_its_pronouns_stand_for_before_them() -> None:
    for story in stories():
        named = set()
        for number, kind, of, case, _ in PART.findall(story):
            assert not of or of in named, story
            assert not case or case in ("he", "him", "his", "who"), story
            assert not kind or kind in PRONOUN or kind in SLOTS, story
            named.add(number)


def test_men_and_women_of_a_story_change_places_together(monkeypatch: pytest.MonkeyPatch) -> None:
    story = "{1:man} saw {2:woman}, and then [1:he] asked [2:him] about [1:his] hat."
    monkeypatch.setattr("making.world.stories.stories", lambda: (story,))
    found = set()
    for text in some("stories"):
        meant = [link for link in text.links if link.behaviour.startswith("pronouns")]
        found.add(tuple(text.words[link.query] for link in meant))
        first, second, third = (link.keys for link in meant)
        assert max(first) < min(second)
        assert first == third
    assert found == {("he", "her", "his"), ("she", "him", "her")}


def test_what_follows_a_noun_is_the_habit_of_an_adjective_if_it_has_one() -> None:
    seen = 0
    for text in some("adjectives"):
        adjectives = {link.query: link.keys for link in links(text, "adjectives")}
        for answer in text.answers:
            keys = adjectives.get(answer.word - 1)
            if answer.measure == "what follows the noun" and keys:
                seen += 1
                assert len(answer.accepted) <= len(keys), text.source
    assert seen > 20


def test_the_last_was_of_a_mystery_links_to_every_mention_of_the_answer() -> None:
    for text in some("mystery"):
        (link,), (answer,) = text.links, text.answers
        assert text.words[link.query].lower() == "was"
        assert answer.word == link.query + 1
        assert {text.words[k] for k in link.keys} == {text.words[answer.word]}


def test_a_case_ends_with_the_suspect_of_its_deed_named_as_before() -> None:
    nouns = relatives = 0
    for text in some("cases"):
        (link,) = text.links
        ending = [text.words[answer.word] for answer in text.answers]
        assert [a.word for a in text.answers] == [link.query + 1 + i for i in range(len(ending))]
        assert text.words[link.query].lower() == "was"
        assert {text.words[k].lower() for k in link.keys} == {ending[-1].lower()}
        nouns += ending[0] == "the"
        relatives += ending[0] in ("my", "her", "his", "our", "their", "its", "your")
    assert nouns > COUNT / 5
    assert relatives > COUNT / 50


def test_a_mystery_tells_of_one_to_five_suspects_in_three_forms() -> None:
    forms = {"passive": 0, "active or clue": 0}
    for text in some("mystery"):
        name = text.words[text.answers[0].word]
        passive = any(
            a == "by" and b == name
            for a, b in itertools.pairwise(text.words[: text.links[0].query])
        )
        forms["passive" if passive else "active or clue"] += 1
    assert forms["passive"] > COUNT / 5
    assert forms["active or clue"] > COUNT / 3


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("walk", "walk walks walked walked walking"),
        ("hug", "hug hugs hugged hugged hugging"),
        ("carry", "carry carries carried carried carrying"),
        ("make", "make makes made made making"),
        ("watch", "watch watches watched watched watching"),
        ("treat", "treat treats treated treated treating"),
        ("see", "see sees saw seen seeing"),
        ("fix", "fix fixes fixed fixed fixing"),
    ],
)
def test_verbs_have_their_forms(base: str, forms: str) -> None:
    assert [verb_form(base, form) for form in "bsdng"] == forms.split()


def test_joined_texts_keep_every_word_of_every_link() -> None:
    parts = some("adjectives")[:3]
    whole = joined(parts)
    said = [(whole.words[x.query], {whole.words[k] for k in x.keys}) for x in whole.links]
    alone = [(t.words[x.query], {t.words[k] for k in x.keys}) for t in parts for x in t.links]
    assert said == alone


def test_a_writer_begins_sentences_with_a_capital_when_asked() -> None:
    writer = Writer("plain", capitals=True)
    writer.say("it rained . the sun came")
    assert writer.text().source == "It rained. The sun came"
