"""Completion, where typer's own falls short, and the options that set it up.

- In zsh typer offers nothing at the first Tab of a shell: zsh loads the script when it first needs
  it, and then calls it as a function. And it loses apostrophes, which typer doubles.
- Behind `--view=` typer offers what its shell then rejects: zsh and fish replace the whole word,
  and bash takes the `=` for a word of its own.
- `--show-completion zsh` prints the script of the shell that calls, whatever is named.
"""

import subprocess
from typing import Annotated, Any, Literal, TypeAlias

import typer
from typer import _completion_classes, _completion_shared
from typer._click.shell_completion import CompletionItem, add_completion_class

from attnviz.errors import OutputError, UsageError

ZSH = """
#compdef %(prog_name)s

%(complete_func)s() {
  setopt localoptions rcquotes
  local -a reply
  reply=($(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" \\
    %(autocomplete_var)s=complete_zsh %(prog_name)s))
  [[ $reply == _files ]] && compset -P '--*='
  eval $reply
}

compdef %(complete_func)s %(prog_name)s
if [[ $funcstack[1] == _%(prog_name)s ]]; then
  %(complete_func)s "$@"
fi
"""
SHOW, INSTALL = "--show-completion", "--install-completion"


class _Values:
    """Offers values behind `--name=` so that the shell can put them there."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        if args[-1:] == ["="] and args[-2:][0].startswith("--"):  # bash: `--view`, `=`, `ta`
            args = args[:-1]
        items: list[CompletionItem] = super().get_completions(args, incomplete)  # type: ignore[misc]
        name, equals, _ = incomplete.partition("=")
        if equals and name.startswith("--"):
            for item in items:
                item.value = f"{name}={item.value}"
        return items


def set_up() -> None:
    """Register how each shell is answered, and the script for zsh."""
    _completion_shared._completion_scripts["zsh"] = ZSH
    classes = _completion_classes
    for each in (
        classes.BashComplete,
        classes.ZshComplete,
        classes.FishComplete,
        classes.PowerShellComplete,
    ):
        add_completion_class(type(each.__name__, (_Values, each), {}), each.name)


def with_shell(args: list[str]) -> list[str]:
    """The arguments, with the name of the shell that calls where none is named.

    Raises:
        UsageError: it cannot be found out.
    """
    if args[-1:] not in ([SHOW], [INSTALL]):
        return args
    shell = _completion_shared._get_shell_name()
    if shell not in _completion_shared._completion_scripts:
        raise UsageError(
            "the shell that calls is not known", f"name it, as in attnviz {args[-1]} bash"
        )
    return [*args, shell]


def _show(context: typer.Context, shell: str | None) -> None:
    if shell and not context.resilient_parsing:
        name = str(context.find_root().info_name)
        variable = f"_{name.upper()}_COMPLETE"
        typer.echo(
            _completion_shared.get_completion_script(
                prog_name=name, complete_var=variable, shell=shell
            )
        )
        raise typer.Exit


def _install(context: typer.Context, shell: str | None) -> None:
    if shell and not context.resilient_parsing:
        try:
            _, path = _completion_shared.install(shell)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise OutputError(
                f"completion for {shell} cannot be written ({error})",
                f"attnviz {SHOW} {shell} prints it",
            ) from error
        typer.echo(f"{shell} completion is in {path}; it works in the next {shell} that you start.")
        raise typer.Exit


def _option(flag: str, callback: Any, what: str) -> Any:
    return typer.Option(
        flag,
        metavar="[SHELL]",
        callback=callback,
        expose_value=False,
        is_eager=True,
        help=f"{what} completion for a shell: bash, zsh, fish or powershell. Without a name: for "
        "the shell that calls.",
    )


Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
Install: TypeAlias = Annotated[Shell | None, _option(INSTALL, _install, "Install")]
Show: TypeAlias = Annotated[Shell | None, _option(SHOW, _show, "Print")]
