"""See which tokens attend to which.

    import attnviz

    capture = attnviz.capture("a fluffy blue creature", heads="L1H2")
    capture.pattern(1, 2)       # (n_queries, n_keys), float32
    capture.links(top=3)
    capture.save("creature.npz")
    attnviz.generate("the creature was").shares()
    attnviz.why("a fluffy blue creature", query="creature").pairs

Importing the package loads no torch; the first `capture` or `load_model` does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.api import (
        AttentionAnswer,
        AttentionCapture,
        Link,
        Model,
        capture,
        generate,
        load,
        load_model,
        why,
        writes,
    )
    from attnviz.api_scan import ScanAtlas, atlas, scan
    from attnviz.data.tokens import Token
    from attnviz.data.why import Part, Why, Write
    from attnviz.errors import AttnvizError

__all__ = [
    "AttentionAnswer",
    "AttentionCapture",
    "AttnvizError",
    "Link",
    "Model",
    "Part",
    "ScanAtlas",
    "Token",
    "Why",
    "Write",
    "__version__",
    "atlas",
    "capture",
    "generate",
    "load",
    "load_model",
    "scan",
    "why",
    "writes",
]

_HOME = {
    "AttnvizError": "attnviz.errors",
    "Part": "attnviz.data.why",
    "ScanAtlas": "attnviz.api_scan",
    "atlas": "attnviz.api_scan",
    "scan": "attnviz.api_scan",
    "Token": "attnviz.data.tokens",
    "Why": "attnviz.data.why",
    "Write": "attnviz.data.why",
}


def __getattr__(name: str) -> Any:
    import importlib
    import importlib.metadata

    if name == "__version__":
        return importlib.metadata.version("attnviz")
    if name in __all__:
        return getattr(importlib.import_module(_HOME.get(name, "attnviz.api")), name)
    raise AttributeError(f"module 'attnviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
