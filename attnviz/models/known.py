"""The models that are known by name, with their sizes, without a file or a request."""

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

from attnviz.models.folder.shapes import GPT_SIZES, UNPUBLISHED, known_total
from attnviz.records.heads import ModelFacts

BUILTIN, TRANSLATOR, EMBEDDINGS = "builtin", "translator", "embeddings"
BUNDLED = (BUILTIN, TRANSLATOR)


HUB_MODELS = tuple(
    ModelFacts(
        name,
        sizes.n_layer,
        sizes.n_head,
        known_total(name),
        sizes.n_positions,
        "from the hub, once",
    )
    for name, sizes in GPT_SIZES.items()
    if name not in UNPUBLISHED
)
KNOWN_MODELS = (*BUNDLED, EMBEDDINGS, *(model.name for model in HUB_MODELS))
COUNTED = (*BUNDLED, *GPT_SIZES)


def nearest(name: str, names: Sequence[str] = KNOWN_MODELS) -> str:
    """` (did you mean gpt2?)`: the name that is nearest, or two that are as near, or nothing."""
    near = get_close_matches(name, names, n=2)
    if not near or name in near:
        return ""
    first, *_ = ratios = [SequenceMatcher(a=other, b=name).ratio() for other in near]
    equal = sorted(other for other, ratio in zip(near, ratios, strict=True) if ratio == first)
    return f" (did you mean {' or '.join(equal)}?)"
