"""The built-in model's tokenizer: byte-level BPE in which common English words are one token each.

A text is cut at spaces and around punctuation. Every word then carries a space mark (Ġ), whether
a space, a quote, a bracket or a line break precedes it, so that a word is the same token
everywhere, and differs from the same letters inside a longer word. Words of the vocabulary are
one token (`ignore_merges`); everything else is cut into pieces and in the end into bytes, so that
any text can be encoded.
"""

import itertools
import json
import re
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import Replace
from tokenizers.normalizers import Sequence as Normalizers
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.trainers import BpeTrainer

from attnviz.models.tokenizer import END
from making.world.lexicon import (
    ADJECTIVES,
    common,
    entries,
    groups,
    plural,
    read,
    verb_form,
)
from making.world.text import Text

VOCABULARY = 14_000
PIECES = 1800
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
CAPITALISED = 1100
STARTERS = """
i Therefore Thus Hence So Clearly Although Because While When Where Why Who What How Nobody
Nothing Everyone Everybody Somebody Someone Something Everything Yesterday Today Tomorrow Please
Perhaps Maybe Suddenly Finally Soon Later Then After Before During Until Since Unless If Once
Every Each Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April
May June July August September October November December Uncle Aunt Captain Doctor Professor
King Queen Prince Princess Lord Lady Sir Grandma Grandpa Mum Dad Mom He She It They His Her Its
Their Him Them Dear Hi Hello Thanks Sorry Yes Buy Add Mix Stir Heat Chop Preheat Bake Pour Boil
Fry Serve Drain Sprinkle Remove Press Click Install Check Wait Stop Listen Look Call Meet Send
Write Tell Ask Bring Choose Try Happy Good Great Grandmother Grandfather Mother Father Sister
Brother Chancellor Minister Police Scientists Researchers Officials Residents Children Students
Teachers Parents Doctors Don n't wo Wo ai Ai Won Can sha Sha N'T Let Never
Always Sometimes Often Usually Customers Workers Drivers Visitors Prices Shares Rain Snow Heavy
Strong Fresh Old New Young Little Big
""".split()
LONG = {
    "n't": "not", "N'T": "not", "'t": "not", "'re": "are", "'ve": "have", "'ll": "will",
    "'d": "would", "'m": "am", "wo": "will", "Wo": "Will", "sha": "shall", "Sha": "shall",
    "ai": "is", "Ai": "Is",
}  # fmt: skip
"""The parts of contractions, and what they stand for; "'s" can be "is" or a genitive."""
LOWER = 160
"""The names of each list that are also one token in lower case, as people type them."""
ZIPF = 2000

# a verb and its "n't" ("did" "n't", but "can" "'t"), a word, its apostrophe part ("Anna" "'s"), a
# run of digits, an empty line, any other mark; spaces and single line breaks between words are
# dropped. A browser reads it, too.
NOT = r"[Nn]['’][Tt]\b"
CONTRACTED = rf"[Cc][Aa][Nn](?=['’][Tt]\b)|\p{{L}}[\p{{L}}\p{{M}}]*?(?={NOT})|{NOT}"
CUTS = rf"{CONTRACTED}|\p{{L}}[\p{{L}}\p{{M}}]*|['’](?:s|t|re|ve|ll|d|m)\b|\p{{N}}+|\n{{2,}}|[^ \n]"
TYPED = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-"}
"""Marks of print, which are read as those of a keyboard."""


def build() -> Tokenizer:
    """The built-in model's tokenizer, the same every time."""
    tokenizer = word_tokenizer(_words(), VOCABULARY, PIECES)
    tokenizer.normalizer = Normalizers([Replace(mark, typed) for mark, typed in TYPED.items()])
    return tokenizer


def word_tokenizer(words: Iterable[str], size: int, pieces: int, cuts: str = CUTS) -> Tokenizer:
    """A tokenizer of `size` tokens: pieces learned from word lists, then whole words, in order.

    Args:
        words: words to become one token each, the most important first, as long as there is room.
        size: the size of the vocabulary, `<|endoftext|>` included.
        pieces: the number of tokens that are bytes and pieces of words.
        cuts: the regular expression of the parts that a text is cut into.
    """
    learned = _pieces(pieces, cuts)
    vocabulary = dict(learned.get_vocab(with_added_tokens=False))
    for word in words:
        if len(vocabulary) == size - 1:
            break
        vocabulary.setdefault(spelled(word), len(vocabulary))
    tokenizer = Tokenizer(BPE(vocabulary, _merges(learned), ignore_merges=True))
    _set_steps(tokenizer, cuts)
    tokenizer.add_special_tokens([END])
    return tokenizer


def spelled(word: str) -> str:
    """The token of a whole word: a letter for each of its bytes."""
    (cut, _), *_ = ByteLevel(add_prefix_space=True, use_regex=False).pre_tokenize_str(word)
    return str(cut)


def _set_steps(tokenizer: Tokenizer, cuts: str) -> None:
    tokenizer.pre_tokenizer = Steps(
        [
            Split(Regex(cuts), behavior="removed", invert=True),
            ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    tokenizer.decoder = ByteLevelDecoder()


def _pieces(size: int, cuts: str) -> Tokenizer:
    """An ordinary byte-level BPE, for words that are not in the vocabulary."""
    tokenizer = Tokenizer(BPE())
    _set_steps(tokenizer, cuts)
    trainer = BpeTrainer(
        vocab_size=size,
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=[],
    )
    marks = [*PUNCTUATION, "\n", "\t", *_numbers()] * ZIPF
    tokenizer.train_from_iterator(itertools.chain(marks, _weighted()), trainer)
    return tokenizer


def _weighted() -> Iterable[str]:
    """Common words with the frequencies of Zipf's law, and capitalised a tenth as often."""
    for rank, word in enumerate(common("common"), start=1):
        yield from [word] * (1 + ZIPF // rank)
        yield from [word.capitalize()] * (1 + ZIPF // (10 * rank) if rank < CAPITALISED else 0)


def _merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def _numbers() -> list[str]:
    return [str(n) for n in range(100)]


def _words() -> Iterable[str]:
    """The words that become one token, the most important first."""
    yield from ("'s", "'t", "'re", "'ve", "'ll", "'d", "'m", "Mr", "Mrs", "Miss", "Ms", "I")
    yield from STARTERS
    yield from _numbers()
    names = groups("names")
    yield from itertools.chain(names["female"], names["male"], names["surname"])
    for name in itertools.chain(names["female"][:LOWER], names["male"][:LOWER]):
        yield name.lower()
    classes = groups("classes")
    yield from itertools.chain(*classes.values(), ADJECTIVES)
    for kind, nouns in classes.items():
        yield from (plural(noun) for noun in nouns if kind not in ("stuff", "group"))
    for line in itertools.chain(*entries("habits").values()):
        yield from line.split()
    for past, _, clues in (line.split("|") for line in read("topics") if "|" in line):
        yield from past.split()
        yield from clues.split()
    yield from groups("senses")
    for frame in ("pp", "pt", "pf", "pl"):
        for base, form in itertools.product(groups("frames")[frame], "bsdng"):
            yield verb_form(base, form)
    for deed in itertools.chain(*entries("deeds").values()):
        yield from re.findall(r"[a-z]+", deed)
    more = groups("more").values()
    yield from itertools.chain(*more)
    words = common("common")
    yield from words[:8000]
    yield from (word.capitalize() for word in words[:CAPITALISED])
    yield from itertools.chain(common("adjectives"), common("verbs"), common("proper"))
    yield from words[8000:]


class WordEncoder:
    """Encodes texts word by word; each word is cut once and remembered."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, tuple[int, ...]] = {}
        self.bos = int(tokenizer.get_vocab()[END])

    def word(self, word: str) -> tuple[int, ...]:
        if word not in self._known:
            self._known[word] = tuple(self._tokenizer.encode(word, add_special_tokens=False).ids)
        return self._known[word]

    def text(self, text: Text) -> tuple[list[int], list[Sequence[int]]]:
        """Token ids with BOS in front, and the positions of each word's tokens."""
        ids = [self.bos]
        positions: list[Sequence[int]] = []
        for word in text.words:
            pieces = self.word(word)
            positions.append(range(len(ids), len(ids) + len(pieces)))
            ids += pieces
        return ids, positions

    def typed(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text as a person typed it, with BOS in front, and their characters."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return [self.bos, *encoding.ids], [(0, 0), *encoding.offsets]
