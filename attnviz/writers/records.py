"""Rows with the same fields, as JSON, JSON lines, CSV or TSV."""

from collections.abc import Iterator, Mapping, Sequence

from attnviz.data.serial import SCHEMA, made_to_dict, shortest, to_json
from attnviz.writers.rows import SEPARATORS, printable_cell


def record_chunks(
    records: Sequence[Mapping[str, object]],
    form: str,
    command: str,
    *,
    header: bool = True,
    made: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """The rows, one on each line.

    Args:
        records: at least one; all have the keys of the first, in the same order.
        form: `json` (an object with the version of the schema, the command and its rows), `jsonl`,
            `csv` or `tsv` (with a header; None is an empty cell, and a list is joined by spaces).
        command: the command that they are of.
        header: whether csv and tsv begin with one.
        made: how they were made, for json.
    """
    if form == "json":
        yield f'{{\n"schema": {to_json(SCHEMA)},\n"command": {to_json(command)},\n'
        yield f'"made": {to_json(made or made_to_dict(()))},\n"rows": [\n'
        yield ",\n".join(map(to_json, records)) + "\n]\n}\n"
    elif form == "jsonl":
        yield from (to_json(record) + "\n" for record in records)
    else:
        separator = SEPARATORS[form]
        if header:
            yield separator.join(records[0]) + "\n"
        for record in records:
            yield separator.join(_cell(value, separator) for value in record.values()) + "\n"


def _cell(value: object, separator: str) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return printable_cell(joined(value), separator)
    if not isinstance(value, str):
        return to_json(value)
    return printable_cell(value, separator)  # so that no escape code reaches a terminal


def joined(values: Sequence[object]) -> str:
    """A list in one cell: numbers and texts joined by spaces, objects as JSON."""
    plain = all(isinstance(each, str | int | float) for each in values)
    return " ".join(map(str, shortest(values))) if plain else to_json(values)
