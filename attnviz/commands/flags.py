"""How the command line spells a parameter."""

UNLIKE = {
    "output": "-o",
    "format": "-f",
    "layers": "--layer",
    "heads": "--head",
    "mlps": "--mlp",
    "whole_layers": "--whole-layer",
    "source": "--from",
    "queries": "--query",
    "keys": "--key",
    "drop_keys": "--drop-key",
    "least": "--min",
    "replacement": "--with",
    "context_size": "--context",
    "docs": "--doc",
    "segments": "--segment",
    "most": "--max-new-tokens",
}
"""Flags that are not spelled as their parameter is."""


def as_flag(name: str, value: str | None = None) -> str:
    """A parameter as it is typed: `--drop-sink`, `--no-chars`, `--top 5`, `-o FILE.png`."""
    flag = UNLIKE.get(name, f"--{name.replace('_', '-')}")
    if value == "False":
        return f"--no-{flag.removeprefix('--')}"
    return flag if value is None else f"{flag} {value}"
