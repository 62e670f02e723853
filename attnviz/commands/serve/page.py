"""The live page: the lesson's, with runs that come from a server or from a notebook's kernel."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from attnviz.commands.explain.page import (
    FOLDER as LESSON,
)
from attnviz.commands.explain.page import PARTS, STYLES, TRY, colors_of, named_of
from attnviz.commands.explain.readings import carried_readouts, words_of_links
from attnviz.draw import page as document
from attnviz.draw.glossary import definitions
from attnviz.draw.page import COMMON, HEAD, MAP, filled, policies, policy, safe_json, source
from attnviz.draw.titles import model_facts
from attnviz.errors import readable
from attnviz.kit.values import Loaded

FOLDER = "commands/serve/page"
LINKS = "draw/page/lines.js"
FIRST = "a fluffy blue creature roamed the verdant forest"
