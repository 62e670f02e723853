"""The headings of help, and what declares an option under each."""

from functools import partial

from attnviz.commands.grouping import option_field

TEXT, MODEL, HEADS, TOKENS = "The text", "The model", "Which heads", "Which tokens"
LOOK, OUTPUT = "How it is shown", "Where it goes"
of_text, of_model, of_heads, of_tokens, of_look, of_output = (
    partial(option_field, panel) for panel in (TEXT, MODEL, HEADS, TOKENS, LOOK, OUTPUT)
)
