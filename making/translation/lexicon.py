"""English words with their French: nouns with gender, adjectives that agree, verbs, names."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Gender: TypeAlias = Literal["m", "f"]
Number: TypeAlias = Literal["s", "p"]

_NOUNS = """
creature/créature/f forest/forêt/f dog/chien/m cat/chat/m horse/cheval/m/chevaux cow/vache/f
sheep/mouton/m//sheep goat/chèvre/f pig/cochon/m rabbit/lapin/m fox/renard/m//foxes
wolf/loup/m//wolves bear/ours/m/ours lion/lion/m tiger/tigre/m elephant/éléphant/m
monkey/singe/m bird/oiseau/m/oiseaux eagle/aigle/m owl/hibou/m/hiboux crow/corbeau/m/corbeaux
duck/canard/m goose/oie/f//geese swan/cygne/m fish/poisson/m//fish shark/requin/m
whale/baleine/f frog/grenouille/f snake/serpent/m lizard/lézard/m turtle/tortue/f
spider/araignée/f butterfly/papillon/m//butterflies dragon/dragon/m giant/géant/m
witch/sorcière/f//witches king/roi/m queen/reine/f prince/prince/m princess/princesse/f//princesses
knight/chevalier/m soldier/soldat/m farmer/fermier/m doctor/médecin/m child/enfant/m//children
boy/garçon/m girl/fille/f man/homme/m//men woman/femme/f//women robot/robot/m
ghost/fantôme/m monster/monstre/m tree/arbre/m flower/fleur/f leaf/feuille/f//leaves
river/rivière/f lake/lac/m sea/mer/f ocean/océan/m island/île/f mountain/montagne/f
hill/colline/f valley/vallée/f meadow/prairie/f field/champ/m desert/désert/m beach/plage/f//beaches
cave/grotte/f road/route/f bridge/pont/m street/rue/f village/village/m town/ville/f
castle/château/m/châteaux tower/tour/f palace/palais/m/palais house/maison/f
church/église/f//churches school/école/f garden/jardin/m kitchen/cuisine/f
library/bibliothèque/f//libraries door/porte/f window/fenêtre/f wall/mur/m table/table/f
chair/chaise/f bed/lit/m lamp/lampe/f mirror/miroir/m box/boîte/f//boxes basket/panier/m
bottle/bouteille/f cup/tasse/f knife/couteau/m/couteaux/knives book/livre/m letter/lettre/f
picture/image/f clock/horloge/f bell/cloche/f violin/violon/m ball/ballon/m toy/jouet/m
boat/bateau/m/bateaux ship/navire/m car/voiture/f train/train/m bicycle/vélo/m
hat/chapeau/m/chapeaux coat/manteau/m/manteaux shirt/chemise/f shoe/chaussure/f
glove/gant/m ring/bague/f crown/couronne/f sword/épée/f apple/pomme/f pear/poire/f
lemon/citron/m bread/pain/m cake/gâteau/m/gâteaux soup/soupe/f egg/œuf/m stone/pierre/f
diamond/diamant/m cloud/nuage/m star/étoile/f moon/lune/f sun/soleil/m mole/taupe/f
mouse/souris/f/souris/mice
"""

_ADJECTIVES = """
fluffy/duveteux/duveteuse blue/bleu verdant/verdoyant red/rouge green/vert yellow/jaune
white/blanc/blanche black/noir brown/brun grey/gris/grise purple/violet/violette pink/rose
golden/doré dark/sombre pale/pâle shiny/brillant dusty/poussiéreux/poussiéreuse dirty/sale
clean/propre wet/mouillé dry/sec/sèche frozen/gelé warm/chaud cold/froid soft/doux/douce
hard/dur rough/rugueux/rugueuse round/rond square/carré flat/plat deep/profond
furry/poilu striped/rayé hollow/creux/creuse heavy/lourd light/léger/légère strong/fort
weak/faible fast/rapide slow/lent lazy/paresseux/paresseuse sleepy/endormi
brave/courageux/courageuse shy/timide proud/fier/fière fierce/féroce wild/sauvage
friendly/amical/amicale/amicaux noisy/bruyant quiet/tranquille silent/silencieux/silencieuse
happy/heureux/heureuse sad/triste angry/furieux/furieuse clever/malin/maligne wise/sage
funny/drôle strange/étrange rare/rare famous/célèbre secret/secret/secrète hidden/caché
lost/perdu empty/vide full/plein rich/riche poor/pauvre elegant/élégant lonely/solitaire
cute/mignon/mignonne cruel/cruel/cruelle magical/magique mysterious/mystérieux/mystérieuse
rusty/rouillé sunny/ensoleillé sweet/sucré sour/acide bitter/amer/amère salty/salé
juicy/juteux/juteuse ancient/antique modern/moderne broken/cassé crooked/tordu guilty/coupable
American/américain hungry/affamé tired/fatigué loyal/loyal/loyale/loyaux
"""

# These stand before the noun.
_BEFORE = """
small/petit big/grand little/petit beautiful/beau/belle/beaux old/vieux/vieille/vieux
young/jeune new/nouveau/nouvelle/nouveaux good/bon/bonne pretty/joli huge/énorme
nice/gentil/gentille bad/mauvais/mauvaise long/long/longue tall/grand
"""
_BEFORE_VOWELS = {"beau": "bel", "vieux": "vieil", "nouveau": "nouvel"}

_VERBS = """
roamed/parcour crossed/travers found/trouv left/quitt watched/observ followed/suiv liked/appréci
loved/aim feared/craign reached/atteign visited/visit touched/touch guarded/gard saw/voy
heard/entend wanted/voul painted/peign carried/port sold/vend cleaned/nettoy admired/admir
explored/explor met/rencontr hated/détest described/décriv drew/dessin bought/achet ate/mange
hid/cach surrounded/entour
"""
_PREPOSITIONS = """
in/dans on/sur under/sous behind/derrière with/avec without/sans for/pour
"""


@dataclass(frozen=True)
class Noun:
    """A noun in both languages and numbers."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    gender: Gender


@dataclass(frozen=True)
class Adjective:
    """An adjective with its French forms; `before`: it stands before the noun."""

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    before: bool

    def french(self, gender: Gender, number: Number, *, vowel: bool = False) -> str:
        """The form that agrees; `vowel`: the next word begins with one (un bel arbre)."""
        if gender == "f":
            return self.feminine if number == "s" else _plural(self.feminine)
        if number == "p":
            return self.masculine_plural
        return _BEFORE_VOWELS.get(self.masculine, self.masculine) if vowel else self.masculine


@dataclass(frozen=True)
class Verb:
    """A verb in the past: English, and the French imperfect of third persons."""

    english: str
    stem: str

    def french(self, number: Number) -> str:
        return self.stem + ("ait" if number == "s" else "aient")


def starts_with_vowel(word: str) -> bool:
    """Whether French elides before a word; the h of this lexicon (homme, horloge) is mute."""
    return word[0].lower() in "aeiouéèêâîôûœh" and word not in _ASPIRATED


_ASPIRATED = frozenset(("hibou", "hiboux"))


def _plural(word: str) -> str:
    return word if word[-1] in "sxz" else word + "s"


def _noun(line: str) -> Noun:
    english, french, gender, *more = line.split("/")
    french_plural = more[0] if more and more[0] else _plural(french)
    english_plural = more[1] if len(more) > 1 else english + "s"
    return Noun(english, english_plural, french, french_plural, "f" if gender == "f" else "m")


def _adjective(line: str, *, before: bool) -> Adjective:
    english, masculine, *more = line.split("/")
    feminine = more[0] if more else masculine if masculine.endswith("e") else masculine + "e"
    return Adjective(
        english, masculine, feminine, more[1] if len(more) > 1 else _plural(masculine), before
    )


NOUNS = tuple(_noun(line) for line in _NOUNS.split())
ADJECTIVES = (
    *(_adjective(line, before=False) for line in _ADJECTIVES.split()),
    *(_adjective(line, before=True) for line in _BEFORE.split()),
)
VERBS = tuple(Verb(*line.split("/")) for line in _VERBS.split())
PREPOSITIONS = tuple(tuple(line.split("/")) for line in _PREPOSITIONS.split())
MALE = """
Bark Tom Paul John James Peter David Mark Luke Adam Ben Sam Max Jack Harry Oscar Leo Henry George
Frank Fred Albert Arthur Charles Edward Eric Felix Hugo Ivan Jacob Kevin Lewis Martin Nathan
Oliver Patrick Philip Ralph Richard Robert Simon Stephen Thomas Victor Walter William Daniel
Michael Andrew Joseph Bob Bill Joe Tim Rex Bruno Carl Otto Ali
""".split()
FEMALE = """
Anna Mary Alice Emma Lucy Sarah Jane Kate Ruth Rose Lily Grace Helen Julia Laura Maria Nina Olivia
Paula Rachel Sophie Susan Tina Vera Wendy Amy Betty Carol Clara Diana Edith Ella Emily Eva Fiona
Flora Greta Hannah Ida Irene Jenny Joan Karen Linda Lisa Martha Molly Nancy Nora Pam Rita Sally
Stella Sylvia Zoe Elizabeth Margaret Eve
""".split()
NAMES = tuple((name, "m") for name in MALE) + tuple((name, "f") for name in FEMALE)
