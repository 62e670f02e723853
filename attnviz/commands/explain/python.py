"""`attnviz.explain`: one head's calculation, number by number."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attnviz.commands.explain.examples import ExampleName, read_matrices
from attnviz.commands.explain.run import (
    RandomInit,
    Subject,
    Telling,
    explain_embeddings,
    of_embeddings,
    of_example,
    of_head,
    of_matrices,
    work_example,
    work_matrices,
)
from attnviz.commands.explain.run import explain as trace_head
from attnviz.errors import UsageError
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import Calculation
from attnviz.kit.values import (
    HeadName,
    check_choices,
    check_count,
    check_one_of,
    check_text,
    check_word,
    head_names,
    one_name,
    path_of,
    recorded,
)
from attnviz.models.placement import EMBEDDINGS
from attnviz.records.trace import Initialisation, Similarity, Way

if TYPE_CHECKING:
    from attnviz.models.scratch.tracing import EmbeddingModel


@recorded
def explain(
    text: str | None = None,
    model: AnyModel = "builtin",
    *,
    head: HeadName | None = None,
    query: str | int | None = None,
    similarity: Similarity | None = None,
    example: ExampleName | None = None,
    matrices: str | PathLike[str] | None = None,
    causal: bool = False,
    rounded: bool = False,
    init: Initialisation = "normal",
    seed: int = 0,
    only: str | None = None,
    digits: int | None = None,
    columns: bool = False,
    as_lookup: bool = False,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
    target: str | None = None,
) -> Calculation[Any]:
    """Follow one head's calculation for one query, step by step.

    >>> steps = attnviz.explain("a fluffy blue creature", head="L3H2", query="creature")
    >>> steps.arrays["pattern"].shape
    (5, 5)
    >>> print(attnviz.explain(example="three-inputs", only="1"))  # doctest: +ELLIPSIS
    Self-attention by hand: three inputs of four numbers
    ...

    Args:
        text: the text; None with `example` and `matrices`.
        model: a name as for `load_model`, or a loaded model; "embeddings" compares bare embeddings.
        head, query: which calculation; each has a default.
        similarity: also compare queries and keys so: "dot", "scaled-dot", "general" or "rbf".
        example: "three-inputs" or "multi-head", which need no model.
        matrices: a JSON file with x, w_query, w_key and w_value, worked out in place of a model.
        causal: mask later tokens in an example or in matrices.
        rounded: round the softmax of an example to one decimal, as one does on paper.
        init, seed: of the random weights of "multi-head".
        only: write out only these steps: `"3"`, `"2,3"`, `"2-4"`.
        digits: the decimals that are written; the calculation itself is not rounded.
        columns: write tokens as columns, too.
        as_lookup: write the row as a look-up in a database.
        bos, special, truncate, target: as for `attnviz.capture`.

    Returns:
        a calculation whose record is a `Traced`, an `EmbeddingTrace` or a `Worked`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    check_choices(similarity=(similarity, Similarity), init=(init, Initialisation))
    check_count("seed", seed, 0)
    check_count("digits", digits, 0, every=True)
    check_word("only", only)
    telling = Telling(only, digits, columns, as_lookup)
    if sum(given is not None for given in (text, example, matrices)) != 1:
        raise UsageError("explain takes exactly one thing", "give a text, an example or matrices")
    if example is not None:
        check_one_of("example", example, ExampleName)
        like = similarity or ("dot" if example == "three-inputs" else "scaled-dot")
        worked = work_example(example, Way(like, causal, rounded), RandomInit(init, seed))
        return of_example(worked, example, telling)
    if matrices is not None:
        way = Way(similarity or "scaled-dot", causal, rounded)
        worked = work_matrices(read_matrices(Path(path_of("matrices", matrices))), way)
        return of_matrices(worked, str(matrices), telling)
    check_text(text)
    assert text is not None
    model = loaded(model, causal=causal and model == EMBEDDINGS)
    options = text_options(model, bos, special, truncate, target)
    named = one_name(query)
    if causal and model.name != EMBEDDINGS:
        raise UsageError("causal is for embeddings and for examples", "leave it out")
    if model.name == EMBEDDINGS:
        embeddings = cast("EmbeddingModel", model._loaded)
        trace, run = explain_embeddings(embeddings, text, named, options)
        return of_embeddings(trace, run, telling)
    subject = Subject(head_names(head), named, similarity)
    return of_head(trace_head(model._loaded, text, subject, options), telling)
