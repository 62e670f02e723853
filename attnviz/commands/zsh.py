"""The completion script for zsh, in the place of typer's.

Typer's offers nothing at the first Tab of a shell: zsh loads the script when it first needs it,
and then calls it as a function. And it loses apostrophes, which typer doubles.
"""

from typer import _completion_shared

SCRIPT = """
#compdef %(prog_name)s

%(complete_func)s() {
  setopt localoptions rcquotes
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" \\
    %(autocomplete_var)s=complete_zsh %(prog_name)s)
}

compdef %(complete_func)s %(prog_name)s
if [[ $funcstack[1] == _%(prog_name)s ]]; then
  %(complete_func)s "$@"
fi
"""


def use_script() -> None:
    """Let `--show-completion` and `--install-completion` give this script to zsh."""
    _completion_shared._completion_scripts["zsh"] = SCRIPT
