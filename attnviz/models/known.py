"""Models that are known by name, with their sizes: no file and no request is needed."""

from dataclasses import dataclass
from difflib import get_close_matches

BUILTIN, TRANSLATOR, EMBEDDINGS = "builtin", "translator", "embeddings"
BUNDLED = (BUILTIN, TRANSLATOR)


@dataclass(frozen=True)
class ModelFacts:
    """A model's sizes; `where` says in words where it comes from."""

    name: str
    layers: int
    heads_per_layer: int
    parameters: int
    context: int
    where: str


HUB_MODELS = tuple(
    ModelFacts(name, layers, heads, parameters, 1024, "from the hub, once")
    for name, layers, heads, parameters in (
        ("gpt2", 12, 12, 124_439_808),
        ("gpt2-medium", 24, 16, 354_823_168),
        ("gpt2-large", 36, 20, 774_030_080),
        ("gpt2-xl", 48, 25, 1_557_611_200),
        ("distilgpt2", 6, 12, 81_912_576),
    )
)
NAMES = (*BUNDLED, EMBEDDINGS, *(model.name for model in HUB_MODELS))


def nearest(name: str) -> str:
    """` (did you mean gpt2?)`, or nothing where no known name is near."""
    near = get_close_matches(name, NAMES, n=1)
    return f" (did you mean {near[0]}?)" if near and near[0] != name else ""
