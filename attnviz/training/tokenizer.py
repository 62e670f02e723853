"""The built-in model's tokenizer: byte-level BPE in which common English words are one token each.

A text is cut at spaces and around punctuation. Every word then carries a space mark (Ġ), whether
a space, a quote, a bracket or a line break precedes it, so that a word is the same token
everywhere, and differs from the same letters inside a longer word. Words of the vocabulary are
one token (`ignore_merges`); everything else is cut into pieces and in the end into bytes, so that
any text can be encoded.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.trainers import BpeTrainer

from attnviz.models.tokenizer import END
from attnviz.training.world.lexicon import common
from attnviz.training.world.text import Text
from attnviz.training.world.texts import texts

VOCABULARY = 9984
PIECES = 2400
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
CAPITALISED = 1800
SAMPLED_TEXTS = 20_000
OFTEN = 8
ZIPF = 2000

# a word with its apostrophe part, a run of digits, an empty line, any other mark; spaces and
# single line breaks between words are dropped
CUTS = r"\p{L}[\p{L}\p{M}]*(?:['’]\p{L}+)?|\p{N}+|\n{2,}|[^ \n]"


def build() -> Tokenizer:
    """The built-in model's tokenizer, the same every time."""
    return word_tokenizer(_words(), VOCABULARY, PIECES)


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
    counts = Counter(
        w for t in itertools.islice(texts("vocabulary"), SAMPLED_TEXTS) for w in t.words
    )
    yield from (w for w in sorted(counts) if counts[w] >= OFTEN and w.isalpha())
    yield from "Bark murderer dioxide American biopsy roamed verdant fluffy novel shrew".split()
    yield from _numbers()
    lists = [common("adjectives"), common("nouns"), common("verbs"), common("proper")]
    yield from itertools.chain(*lists)
    words = common("common")
    yield from words[:5000]
    yield from (word.capitalize() for word in words[:CAPITALISED])
    yield from words[5000:]


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
