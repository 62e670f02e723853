"""Texts that are hard to cut into tokens, or hard to compute."""

WORDS = (
    "the old fluffy blue creature roamed a verdant forest because Mary gave her friend 42 books ."
)

TEXTS = (
    "a fluffy blue creature roamed the verdant forest",
    "",
    " ",
    " \t\n ",
    "\x1c\x85\u3000",  # blank to Python
    "\ufeff",  # not blank
    "\u200b",
    "\n\n",
    "a\n\nb\n\n\nc\nd",
    "\n\n a",
    "  two  spaces  ",
    "tab\tand\r\nline",
    "don't Don't DON'T we’ll they’re 'tis rock'n'roll cats' it's's o'clock's",
    "it'sé it's_ it's1 it'sً it’s‿a it's​",  # what may stand behind 's
    "'s 't 're",
    "naïve café re\u0301sume\u0301 Ελληνικά русский עברית العربية हिन्दी ภาษาไทย 한국어 日本語",
    "e\u0301\u0302\u0303 \u0301alone \u0301",
    "👩‍👩‍👧‍👦 👍🏽 🇫🇷 😀😀 #️⃣",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𐍈 𠀀",
    "١٢٣ ⅷ ² ½ ① 四十二 1,234.56 3x 0x1F",
    "ﬁ ǆ İ ß ẞ ª º ꝟ ₿ € ™ ℃",
    "ⵣ ꙮ ᚠ ꧁ ᜀ ゛ ー 々 〆",
    "supercalifragilisticexpialidocious antidisestablishmentarianism qwrtzpsdfg",
    "<|endoftext|> <script>alert(1)</script> </textarea>",
    "\\u0041 \\n %s {{data}} $& $1",
    "\u202eabc\u202c \u2028x\u2029y \x00\x01\x7f\xa0\xad",
    "\ud800 half",
    "half \udfff",
    "The bank on Main Street , she said , is closed . He went to the river bank .",
    "1 2 3 1 2 3 1 2 3 1 2",
    "a",
    "a a a a a a",
    " ".join([WORDS] * 15)[:1000],
    " ".join(["a"] * 255),  # the longest, with BOS
    " ".join(["a"] * 256),
    "word " * 1000,
    "x" * 400,
    " " * 5000 + "a",
)
