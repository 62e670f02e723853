"""The words of the little world: small lists, long lists of common English, made-up words."""

import random
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ADJECTIVES = """
fluffy blue verdant red green yellow white black brown grey purple orange pink golden silver tiny
small big large huge enormous giant little tall short long wide narrow thick thin round square flat
deep shallow high low steep old young new ancient modern fresh rotten ripe raw soft hard smooth
rough sharp dull bright dark pale shiny dusty dirty clean muddy wet dry damp icy frozen warm cool
hot sticky slippery hairy furry woolly spotted striped curly straight crooked bent broken cracked
hollow solid heavy light strong weak quick fast slow lazy sleepy brave shy proud gentle fierce
wild tame friendly noisy quiet silent loud happy sad angry hungry thirsty clever wise silly funny
strange odd rare common famous secret hidden lost empty full rich poor cheap expensive beautiful
pretty ugly elegant plump skinny lonely lovely cute nice kind cruel mean evil magical mysterious
wooden metal plastic paper leather rusty dusky misty foggy sunny rainy windy stormy snowy cloudy
sweet sour bitter salty spicy tasty juicy crispy rocky sandy leafy grassy mossy thorny
""".split()

NOUNS = """
creature forest dog cat horse cow sheep goat pig rabbit fox wolf bear lion tiger elephant monkey
bird eagle owl crow duck goose swan chicken fish shark whale frog toad snake lizard turtle spider
beetle butterfly dragon giant wizard witch king queen prince princess knight soldier farmer
teacher doctor child boy girl man woman baby robot ghost monster tree flower bush leaf root river
lake sea ocean pond stream waterfall mountain hill valley meadow field desert island beach cave
road path bridge street village town city castle tower palace house cottage hut barn church
temple school garden kitchen library door window wall roof floor table chair bed lamp mirror
carpet curtain pillow blanket box bag basket bottle cup plate bowl spoon knife fork pot pan book
letter map picture statue clock bell drum flute violin piano guitar ball toy doll kite boat ship
car train truck bicycle wagon wheel engine rocket hat coat shirt shoe boot glove scarf ring
necklace crown sword shield apple pear cherry lemon banana grape bread cake pie soup cheese egg
stone rock diamond crystal cloud storm star moon sun planet
""".split()

MALE = """
Bark Tom Paul John James Peter David Mark Luke Adam Ben Sam Max Jack Harry Oscar Leo Henry George
Frank
Fred Albert Arthur Charles Edward Eric Felix Hugo Ivan Jacob Kevin Lewis Martin Nathan Oliver
Patrick Philip Ralph Richard Robert Simon Stephen Thomas Victor Walter William Daniel Michael Andrew
Joseph Bob Bill Joe Tim Rex Bruno Carl Otto Ali
""".split()

FEMALE = """
Anna Mary Alice Emma Lucy Sarah Jane Kate Ruth Rose Lily Grace Helen Julia Laura Maria Nina Olivia
Paula Rachel Sophie Susan Tina Vera Wendy Amy Betty Carol Clara Diana Edith Ella Emily Eva Fiona
Flora Greta Hannah Ida Irene Jenny Joan Karen Linda Lisa Martha Molly Nancy Nora Pam Rita Sally
Stella Sylvia Zoe Elizabeth Margaret Eve
""".split()

VERBS = """
roamed crossed found entered left watched followed liked loved feared passed reached visited
touched guarded covered faced saw met heard hated wanted needed remembered forgot surrounded
destroyed painted carried bought sold lost cleaned moved admired avoided explored inspected
""".split()

PLACES = """
kitchen garden library hall cellar attic stable tower chapel barn office bedroom study yard market
harbour forest village castle park school church museum theatre station bridge
""".split()

ONSETS = "b bl br d dr f fl g gl gr k kl kr l m n p pl r s sk sl sn t tr v w z".split()
RIMES = """
a e i o u ab ack ag am an ap ark ax ay el em en er ick id ig im in ip isk ob ock og om on oop or
ox ub uck ug um un up ust uz
""".split()

VOWELS = "aeiou"
RESERVED_SHARE = 10


def reserved(*words: str) -> bool:
    """Whether these words never occur together in training: one combination in ten.

    It is a fixed function of the words (CRC-32), so that every seed reserves the same ones.
    """
    return zlib.crc32(" ".join(words).lower().encode()) % RESERVED_SHARE == 0


def article(word: str) -> str:
    return "an" if word[0].lower() in VOWELS else "a"


@cache
def common(name: str) -> tuple[str, ...]:
    """A list of common English words from `training/words/`, the most frequent first."""
    text = (files("attnviz.training") / "words" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.split() if line)


@dataclass(frozen=True)
class World:
    """Draws words; with `held_out`, only combinations that training never sees."""

    rng: random.Random
    held_out: bool = False

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def adjective(self) -> str:
        return self._mixed(ADJECTIVES, "adjectives")

    def noun(self) -> str:
        return self._mixed(NOUNS, "nouns")

    def verb(self) -> str:
        return self._mixed(VERBS, "verbs")

    def adjective_for(self, noun: str, taken: set[str]) -> str:
        """An adjective for this noun; the pair is reserved in held-out texts, and only there."""
        while True:
            adjective = self.adjective()
            if adjective not in taken and reserved(adjective, noun) == self.held_out:
                return adjective

    def made_up(self) -> str:
        """A made-up word of two or three syllables, such as "glimbor"."""
        rng = self.rng
        syllables = (rng.choice(ONSETS) + rng.choice(RIMES) for _ in range(rng.choice((2, 2, 3))))
        return "".join(syllables)

    def _mixed(self, core: list[str], long_list: str) -> str:
        """A word of the small list, of the long one, or made up, so that no role needs it."""
        draw = self.rng.random()
        if draw < 0.6:
            return self.rng.choice(core)
        if draw < 0.89:
            return self.rng.choice(common(long_list))
        return self.made_up()
