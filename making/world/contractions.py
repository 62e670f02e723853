"""Contractions: "did not" as "did n't", "it is" as "it 's", word by word as the tokenizer cuts."""

from collections.abc import Mapping
from dataclasses import replace

from making.world.text import Text

NEGATED = frozenset(
    """is are was were do does did has have had can could would should must need might will shall
    """.split()
)
STEMS: Mapping[str, str] = {"will": "wo", "shall": "sha"}
AFTER: Mapping[str, tuple[str, ...]] = {
    "is": ("he", "she", "it", "that", "there", "what", "who", "where", "here"),
    "has": ("he", "she", "it"),
    "are": ("we", "you", "they"),
    "am": ("i",),
    "have": ("i", "we", "you", "they"),
    "will": ("i", "he", "she", "it", "we", "you", "they"),
    "would": ("i", "he", "she", "we", "you", "they"),
    "had": ("i", "he", "she", "we", "you", "they"),
}
"""The words after which a verb is contracted."""
ENDINGS: Mapping[str, str] = {
    "is": "'s", "has": "'s", "are": "'re", "am": "'m", "have": "'ve", "will": "'ll",
    "would": "'d", "had": "'d",
}  # fmt: skip


def contracted(text: Text) -> Text:
    """The text with all its contractions; no word changes its place.

    It knows no grammar: main verbs are contracted, too ("she 'd two brothers").
    """
    words = list(text.words)
    fixed = {answer.word for answer in text.answers}
    for i, (word, after) in enumerate(zip(text.words, text.words[1:], strict=False)):
        verb, next_verb = word.lower(), after.lower()
        if i in fixed or i + 1 in fixed:
            continue
        if next_verb == "not" and verb in NEGATED:
            stem = STEMS.get(verb, verb)
            words[i] = stem.capitalize() if word[0].isupper() else stem
            words[i + 1] = "'t" if verb == "can" else "n't"
        elif verb in AFTER.get(next_verb, ()) and text.words[i + 2 : i + 3] not in ((".",), ("?",)):
            words[i + 1] = ENDINGS[next_verb]
    return replace(text, words=tuple(words))
