"""Completion: the words that a shell offers when its user presses Tab.

Each function takes the context of the unfinished line and the word that has begun, and gives
words, or pairs of a word and its description. Nothing is an error here: without an answer the shell
completes the names of files.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Annotated, Any, Literal, TypeAlias, get_args

import typer
from typer._click.shell_completion import CompletionItem, add_completion_class, get_completion_class
from typer._completion_classes import completion_init
from typer._completion_shared import _get_shell_name, get_completion_script, install

from attnviz.draw.glossary import definitions
from attnviz.draw.labels import distinct_labels
from attnviz.errors import AttnvizError, OutputError, UsageError
from attnviz.inputs.given import SAMPLE, samples
from attnviz.kit.write import VIEWS
from attnviz.models.catalog import Source, cached_names, describe, tokenizer_of
from attnviz.models.folder.files import CONFIG
from attnviz.models.placement import BUILTIN, BUNDLED, EMBEDDINGS, KNOWN_MODELS

Suggestions: TypeAlias = list[str | tuple[str, str]]
Offer: TypeAlias = Callable[[typer.Context, str], Suggestions]
HUB = "huggingface.co"
_PLAIN = re.compile(r"[\w.,/~+@=-]+")
_TOKEN = re.compile(r"[\w.#-]+")


def _quiet(offer: Callable[[typer.Context, str], Iterator[str | tuple[str, str]]]) -> Offer:
    @wraps(offer)
    def offered(ctx: typer.Context, incomplete: str) -> Suggestions:
        try:
            return list(offer(ctx, incomplete))
        except (AttnvizError, OSError, ValueError):
            return []

    return offered


@_quiet
def models(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """The known models, those in the cache, and the folders of models at the path begun."""
    cached = cached_names()
    for name in KNOWN_MODELS:
        where = "bundled" if name in (*BUNDLED, EMBEDDINGS) else f"from {HUB}, once"
        yield name, "in the cache" if name in cached else where
    for name in filter(_PLAIN.fullmatch, cached):
        if name not in KNOWN_MODELS:
            yield name, "in the cache"
    for path in _beside(incomplete):
        if os.path.isfile(os.path.join(os.path.expanduser(path), CONFIG)):
            yield path, "a folder"


@_quiet
def heads(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """The heads of the model on the line; those that its card names have a title.

    Nothing is fetched. After a comma, another head is offered.
    """
    name = ctx.params.get("model", BUILTIN)
    if name == EMBEDDINGS:
        yield "L0H0"
        return
    facts, card = describe(name)
    titles: dict[str, list[str]] = {}
    for named in card.heads:
        titles.setdefault(str(named.head), []).append(named.title)
    before, comma, _ = incomplete.rpartition(",")
    for layer in range(facts.layers):
        for number in range(facts.heads_per_layer):
            head = f"L{layer}H{number}"
            yield f"{before}{comma}{head}", "; ".join(titles.get(head, ()))


@_quiet
def tokens(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """The tokens of the text on the line, by the tokenizer of the model, which is not loaded."""
    text = next(iter(ctx.args), None)  # an unfinished option leaves it there
    name = ctx.params.get("model", BUILTIN)
    if text and text != "-":
        named = tokenizer_of(Source(name, offline=True)).encode(text, bos=False, special=False)
        yield from filter(_TOKEN.fullmatch, distinct_labels(named))


def views(ctx: typer.Context, incomplete: str) -> Suggestions:
    return list(VIEWS.items())


def formats(names: Sequence[str]) -> Offer:
    return lambda ctx, incomplete: [*names]


def cmaps(ctx: typer.Context, incomplete: str) -> Suggestions:
    """The colour maps of matplotlib, which is imported here."""
    from attnviz.draw.picture.paint import known_cmaps

    return [*known_cmaps()]


@_quiet
def captures(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """Saved captures, which can be given in place of a text."""
    for path in _beside(incomplete):
        if path.lower().endswith(".npz"):
            yield path, "a saved capture"


def files(*suffixes: str) -> Offer:
    """The samples with these suffixes, if no file begins so: the shell completes files."""

    @_quiet
    def offered(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
        begun = any(name.startswith(incomplete) for name in os.listdir())
        if incomplete.startswith(SAMPLE) or (SAMPLE.startswith(incomplete) and not begun):
            for name, path in samples().items():
                if path.suffix in suffixes:
                    yield f"{SAMPLE}{name}", path.name

    return offered


TEXTS = files(".txt", ".jsonl")
FILES = {"--image": files(".png"), "--audio": files(), "--pairs": files(".jsonl")}
"""The completion of options that read files, if it is not TEXTS."""


def commands(ctx: typer.Context, incomplete: str) -> Suggestions:
    root = ctx.find_root()
    listed = root.command
    assert isinstance(listed, typer.core.TyperGroup)
    return [*listed.list_commands(root)]


def terms(ctx: typer.Context, incomplete: str) -> Suggestions:
    """The terms of the glossary that are one word, each with its definition."""
    return [(name, told) for name, told in definitions().items() if _PLAIN.fullmatch(name)]


def subjects(ctx: typer.Context, incomplete: str) -> Suggestions:
    """The subjects of help: commands and terms."""
    return commands(ctx, incomplete) + terms(ctx, incomplete)


def _beside(incomplete: str) -> Iterator[str]:
    """The names in the folder of an unfinished path, each as the completed path.

    A shell inserts an offer unchanged: a name that needs quotes is left to its own completion of
    files.
    """
    folder, _ = os.path.split(incomplete)
    paths = (os.path.join(folder, name) for name in os.listdir(os.path.expanduser(folder) or "."))
    return iter(sorted(filter(_PLAIN.fullmatch, paths)))


# typer's own script offers nothing at the first Tab of a zsh, which then loads it and calls it as a
# function; and it loses apostrophes, which typer doubles.
ZSH = """\
#compdef attnviz

_attnviz_completion() {
  setopt localoptions rcquotes
  local -a reply
  reply=($(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" \\
    _ATTNVIZ_COMPLETE=complete_zsh attnviz))
  [[ $reply == _files ]] && compset -P '--*='
  eval $reply
}

compdef _attnviz_completion attnviz
if [[ $funcstack[1] == _attnviz ]]; then
  _attnviz_completion "$@"
fi"""
SHOW, INSTALL = "--show-completion", "--install-completion"
Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell", "pwsh"]


class _Values:
    """Offers values after `--name=`, as zsh and fish replace the whole word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        before = ""  # bash breaks words: `--view`, `=`, `ta`; `--file`, `sample`, `:`, `my`
        if [*args, incomplete][-2:] == ["sample", ":"] or args[-2:] == ["sample", ":"]:
            at = args.index("sample", -2)
            args, incomplete, before = args[:at], SAMPLE + incomplete.lstrip(":"), SAMPLE
        if args[-1:] == ["="] and args[-2:][0].startswith("--"):
            args = args[:-1]
        items: list[CompletionItem] = super().get_completions(args, incomplete)  # type: ignore[misc]
        name, equals, _ = incomplete.partition("=")
        if equals and name.startswith("--"):
            for item in items:
                item.value = f"{name}={item.value}"
        for item in items:
            item.value = item.value.removeprefix(before)
        return items


def set_up() -> None:
    """Register the completion of each shell."""
    completion_init()
    for shell in get_args(Shell):
        answers = get_completion_class(shell)
        assert answers is not None
        add_completion_class(type(answers.__name__, (_Values, answers), {}), shell)


def script_for(shell: str) -> str:
    """The completion script of a shell."""
    if shell == "zsh":
        return ZSH
    return get_completion_script(prog_name="attnviz", complete_var="_ATTNVIZ_COMPLETE", shell=shell)


def with_shell(args: list[str]) -> list[str]:
    """The arguments, with the name of the calling shell if none is named."""
    if args[-1:] not in ([SHOW], [INSTALL]):
        return args
    shell = _get_shell_name()
    if shell is None or shell not in get_args(Shell):
        raise UsageError(
            "the calling shell is not known", f"name it, as in attnviz {args[-1]} bash"
        )
    return [*args, shell]


def _install(shell: str) -> str:
    try:
        _, path = install(shell)
        if shell == "zsh":
            path.write_text(ZSH)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise OutputError(
            f"completion for {shell} cannot be written ({error})",
            f"attnviz {SHOW} {shell} prints it",
        ) from error
    return f"{shell} completion is in {path}; it works in the next {shell} that you start."


def _option(flag: str, act: Callable[[str], str], what: str) -> Any:
    """An option that acts for a shell, prints the result, and exits."""

    def callback(context: typer.Context, shell: str | None) -> None:
        if shell and not context.resilient_parsing:
            typer.echo(act(shell))
            raise typer.Exit

    return typer.Option(
        flag,
        metavar="[SHELL]",
        callback=callback,
        expose_value=False,
        is_eager=True,
        help=f"{what} completion for a shell: bash, zsh, fish or powershell. Default: "
        "the calling shell.",
    )


InstallCompletion: TypeAlias = Annotated[Shell | None, _option(INSTALL, _install, "Install")]
ShowCompletion: TypeAlias = Annotated[Shell | None, _option(SHOW, script_for, "Print")]
