"""What these tests share: the tokenizer, and a small WordNet."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from making import tokenizer as tokenizers
from making import wordnet

LINES = """  1 This software and database is being provided to you, the LICENSEE
00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 | that which exists by itself
02084071 05 n 02 dog 0 domestic_dog 0 001 @ 02083346 n 0000 | a canine; "the dog barked"; "he's fed"
09213565 17 n 01 bank 0 001 @ 09287968 n 0000 | sloping land; "on the bank the canoe lay"
08420278 14 n 02 bank 0 depository 0 000 | an institution holding deposits; \
"he cashed a check at the bank downtown"
"""
VERBS = """00001740 29 v 02 breathe 0 take_a_breath 0 000 | draw air; "I can breathe better"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A WordNet of six senses."""
    for name in wordnet.FILES:
        lines = {"data.noun": LINES, "data.verb": VERBS}.get(name, "")
        (tmp_path / name).write_text(lines, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def world_tokenizer() -> Tokenizer:
    """The tokenizer of the little world, which takes seconds to build."""
    tokenizer = tokenizers.build()
    tokenizer.encode_special_tokens = True
    return tokenizer
