"""Rows with the same fields, as JSON, JSON lines, CSV or TSV."""

import re
from collections.abc import Iterator, Mapping, Sequence

from attnviz.records.rows import SCHEMA, made_to_dict, shortest, to_json

SEPARATORS = {"csv": ",", "tsv": "\t"}
# The start of a cell that a spreadsheet takes for a formula (OWASP, "CSV Injection").
FORMULA = re.compile(r"[=+\-@\t\r]")


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


def printable_cell(text: str, separator: str) -> str:
    """The same as `cell`, escaped as in JSON where it cannot be printed."""
    return cell(text if text.isprintable() else to_json(text)[1:-1], separator)


def cell(text: str, separator: str) -> str:
    """A text as one cell: never a formula, quoted where it holds the separator or a quote.

    A text that a spreadsheet would compute (`=1+1`) gets an apostrophe in front, which marks
    it as text there.
    """
    guarded = f"'{text}" if FORMULA.match(text) else text
    if separator in guarded or '"' in guarded or "\n" in guarded or "\r" in guarded:
        return '"' + guarded.replace('"', '""') + '"'
    return guarded
