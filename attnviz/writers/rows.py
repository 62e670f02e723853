"""Links as rows: JSON lines, CSV and TSV, streamed.

Every row has the same columns, in the order of `COLUMNS` and `EXACT`. Where a map is a reduction,
the column that was reduced holds the reduction's name (`"head": "mean"`). Scores have the column
`score` instead of `weight`.
"""

from collections.abc import Callable, Iterator

import numpy as np

from attnviz.kit.formats import SEPARATORS, cell, printable_cell
from attnviz.records.exhibit import Exhibit, Links, Map, links_of
from attnviz.records.rows import to_json

COLUMNS = ("line", "layer", "head", "query", "query_token", "key", "key_token", "weight")
EXACT = ("query_exact", "key_exact")  # behind the weight: the tokens' exact texts
CHUNK = 32_768  # links in one chunk: a few megabytes at most


def row_chunks(exhibit: Exhibit, form: str, *, line: int = 1, header: bool = True) -> Iterator[str]:
    """The links of every map of an exhibit as text, some thousand rows at a time.

    Args:
        exhibit: the exhibit to write; its filters decide which links there are.
        form: `jsonl`, `csv` or `tsv`.
        line: the number of the input line; 1 where the input is one text.
        header: whether csv and tsv begin with the names of the columns.

    Yields:
        complete rows, each ended by a newline.
    """
    if form in SEPARATORS and header:
        yield SEPARATORS[form].join((*COLUMNS[:-1], exhibit.value_name, *EXACT)) + "\n"
    for head_map in exhibit.maps:
        links = links_of(exhibit, head_map)
        for start in range(0, len(links), CHUNK):
            part = slice(start, start + CHUNK)
            chunk = Links(links.query[part], links.key[part], links.weight[part])
            write = _json_rows if form == "jsonl" else _cell_rows
            yield write(exhibit, head_map, chunk, line, form)


def _json_rows(exhibit: Exhibit, head_map: Map, links: Links, line: int, form: str) -> str:
    layer, head = (to_json(x) if isinstance(x, str) else str(x) for x in head_map.place)
    start = f'{{"line": {line}, "layer": {layer}, "head": {head}, "query": '
    return _joined(
        exhibit,
        links,
        lambda index, label: f'{start}{index}, "query_token": {to_json(label)}, "key": ',
        lambda index, label: f'{index}, "key_token": {to_json(label)}, "{exhibit.value_name}": ',
        lambda text: f', "query_exact": {to_json(text)}, "key_exact": ',
        lambda text: f"{to_json(text)}}}\n",
    )


def _cell_rows(exhibit: Exhibit, head_map: Map, links: Links, line: int, form: str) -> str:
    sep = SEPARATORS[form]
    layer, head = head_map.place
    start = f"{line}{sep}{layer}{sep}{head}{sep}"
    return _joined(
        exhibit,
        links,
        lambda index, label: f"{start}{index}{sep}{cell(label, sep)}{sep}",
        lambda index, label: f"{index}{sep}{cell(label, sep)}{sep}",
        lambda text: f"{sep}{printable_cell(text, sep)}{sep}",
        lambda text: f"{printable_cell(text, sep)}\n",
    )


def _joined(
    exhibit: Exhibit,
    links: Links,
    query_part: Callable[[int, str], str],
    key_part: Callable[[int, str], str],
    query_end: Callable[[str], str],
    key_end: Callable[[str], str],
) -> str:
    """One row per link: its query, its key, its weight, and the exact texts of both tokens.

    The texts are made once for each token and not for each link, so that a million rows take
    about a second.
    """
    query_tokens, key_tokens = exhibit.capture.query_tokens, exhibit.capture.key_tokens
    queries = {i: query_part(i, query_tokens[i].label) for i in np.unique(links.query).tolist()}
    keys = {i: key_part(i, key_tokens[i].label) for i in np.unique(links.key).tolist()}
    after_query = {i: query_end(query_tokens[i].exact) for i in queries}
    after_key = {i: key_end(key_tokens[i].exact) for i in keys}
    rows = zip(links.query.tolist(), links.key.tolist(), map(str, links.weight), strict=True)
    return "".join(
        [f"{queries[q]}{keys[k]}{weight}{after_query[q]}{after_key[k]}" for q, k, weight in rows]
    )
