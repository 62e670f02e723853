"""Sentences on a scan and its views: one head, two scores, and several checkpoints."""

from attnviz.data.atlas import Atlas, HeadAtlas
from attnviz.data.development import Development
from attnviz.data.scatter import FAR, Scatter
from attnviz.draw.titles import amount
from attnviz.errors import readable


def atlas_title(atlas: Atlas) -> str:
    """What was scanned with what."""
    documents, tokens = atlas.size
    size = f"{amount(documents, 'document')}, {amount(tokens, 'token')}"
    return f"{readable(atlas.model)}, scan of {size}: means over documents"


def atlas_head_title(atlas: Atlas, head: HeadAtlas) -> str:
    """Which head of which scan."""
    documents, tokens = atlas.size
    size = f"{amount(documents, 'document')}, {amount(tokens, 'token')}"
    return f"{readable(atlas.model)} {head.head}, scan of {size}: means over documents"


def development_title(development: Development) -> str:
    """How many heads are followed over how many checkpoints."""
    documents, tokens = development.size
    heads = amount(len(development.heads), "head")
    size = f"{amount(documents, 'document')}, {amount(tokens, 'token')}"
    return f"{heads} at {len(development.names)} checkpoints, each a scan of {size}"


def scatter_title(atlas: Atlas, scatter: Scatter) -> str:
    """Which scores of how many heads."""
    heads = amount(len(scatter.points), "head")
    x, y = (name.replace("_", " ") for name in (scatter.x, scatter.y))
    return f"{readable(atlas.model)}, {y} by {x}, {heads}: means over documents"


def outliers_said(scatter: Scatter, named: int) -> str:
    """The rule by which heads are named, and how many there are."""
    rule = (
        f"more than {FAR:g} robust standard deviations (1.4826 × the median absolute deviation) "
        "from the median of all heads in one of the scores"
    )
    outliers = len(scatter.outliers)
    if not outliers:
        said = f"no head lies {rule}"
    elif named < outliers:
        said = f"named: {named} of the {amount(outliers, 'head')} {rule}"
    else:
        said = f"named: heads {rule}"
    if scatter.missing:
        said += f"; {amount(scatter.missing, 'head')} without both scores left out"
    return said
