"""Questions that only knowledge of the world answers: "Who wrote Romeo and Juliet?".

A rule of thumb for English, by words only. Such a question is single, without any text that could
hold the answer, and not about a person or thing at hand.
"""

import re

HERE = frozenset(
    """i me my mine we us our you your yours he him his she her hers they them their it its this
    these those here today tonight tomorrow yesterday now ago""".split()
)
"""Words that show that a question is about somebody or something at hand."""
OF = """capital population currency language president king queen author inventor height depth
length distance speed size area temperature meaning definition formula symbol plural opposite
boiling freezing melting square sum origin""".split()
MADE = (
    "wrote painted composed directed founded designed sculpted built ruled conquered sang".split()
)
NEARER = "best nearest latest earliest next last".split()
"""Superlatives of questions about something at hand."""
NEW = "happening going wrong new next left up on for the that there more else so missing".split()
DETERMINERS = "the a an that some any all both to in on at with".split()

_NAME = r"[A-Z][\w'’-]+"
PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # a name that no single person at hand has
        rf"\b(?:of|in|from|for|to|the|on) {_NAME}",
        rf"(?!^){_NAME} (?:of )?{_NAME}",
        # who made it
        r"(?i)^who (?:invented|discovered)\b",
        rf"(?i)^who (?:{'|'.join(MADE)}) (?!(?:{'|'.join(DETERMINERS)})\b)\w",
        r"(?i)^when (?:was|were) .*\b(?:invented|discovered|founded|born)\b",
        r"(?i)^when did .*\b(?:war|revolution|empire|ice age)\b",
        # facts and definitions
        rf"(?i)^what (?:is|are|was|were) the (?:{'|'.join(OF)})\b.* of\b",
        rf"(?i)^what (?:is|are) (?:an? )?(?!(?:{'|'.join(NEW)})\b)\w+(?<!ing)(?: \w+)?$",
        rf"(?i)^(?:what|which|who)\b.*\b(?:is|are|was|were) the (?!(?:{'|'.join(NEARER)})\b)"
        r"(?:\w{3,}est|most \w+|first \w+ (?:to|on|in))\b",
        r"(?i)^how (?:many|much|old|tall|high|deep|long|far|fast|big|heavy|large|hot)\b.*"
        r"\b(?:an? \w+|moon|sun|earth|universe|world|sea)\b",
        r"(?i)^why (?:is|are|does) (?:the )?(?:sky|sea|sun|moon|earth|ocean|grass|snow|ice)\b",
        rf"(?i)^why do (?!(?:{'|'.join([*DETERMINERS, 'people'])})\b)\w+s \w+",
    )
)
QUESTION = re.compile(
    r"(?i)^(?:(?:in|at|on|to|of) )?(?:who|whose|whom|what|which|when|where|why|how)\b"
)

EMBEDDED = re.compile(
    r"(?i)^(?:(?:do|does|can|could|would|will|have) (?:you|anyone|anybody|someone|somebody) )?"
    r"(?:please |happen to )?(?:know|remember|recall|guess|tell|explain|say|(?:have )?any idea)"
    r"(?: (?:to )?(?:me|us))?,? "
)
"""Beginnings of a question before an embedded one: "Do you know who wrote Hamlet?"."""
VERB_LAST = re.compile(r"(?i)^(how \w+|\w+) (.+) (is|are|was|were)\b")


def asks_for_knowledge(text: str) -> bool:
    """Whether a text is one question that only somebody who knows the world can answer."""
    asked = EMBEDDED.sub("", text.strip()).removesuffix("?").rstrip()
    whole = text.rstrip().endswith("?") and not re.search(r"[.!?:\n]", asked)
    if not whole or not QUESTION.match(asked):
        return False
    words = re.findall(r"[^\W_]+", asked.lower())
    orders = asked, VERB_LAST.sub(r"\1 \3 \2", asked)  # "what the origin of tea is", embedded
    known = any(pattern.search(order) for pattern in PATTERNS for order in orders)
    return known and not HERE & set(words)
