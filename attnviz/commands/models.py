"""`attnviz models`: which models there are, what a model's card says, and which plugins work."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.terminal.cells import Column, folded, listing
from attnviz.draw.titles import amount
from attnviz.errors import ModelError, UsageError, option
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.option import OUTPUT, command, panel_option, positional
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.kit.write import as_output_error
from attnviz.models.catalog import (
    Source,
    dequantised,
    describe,
    identity_of,
    known_models,
    parameters_of,
    save_folder,
)
from attnviz.models.folder.config import READ_HEAD, READOUT
from attnviz.models.placement import BUILTIN, COUNTED, EMBEDDINGS, KNOWN_MODELS
from attnviz.plugins import FAULTS, Plugin, found, working
from attnviz.plugins import plugins as every_plugin
from attnviz.records.heads import Figure, ModelCard, ModelFacts, ReadHead, ReadOut
from attnviz.records.metrics import METRICS
from attnviz.records.rows import NAMED_HEAD, Field, Fields, JsonOutput, at, fields_at, list_of

# Models as rows: their sizes, and what their cards say.


SIZES = Fields[ModelFacts](
    "ModelRow",
    "A model's sizes.",
    (
        Field("name", str),
        Field("layers", int),
        Field(
            "heads",
            int,
            "How many heads all layers have together.",
            lambda model: model.layers * model.heads_per_layer,
        ),
        Field("heads_per_layer", int),
        Field("parameters", int),
        Field("context", int | None, "The most tokens that it takes; null: that is not known."),
        Field("where", str, "Where it comes from, for a person."),
    ),
)
FIGURE = Fields[Figure](
    "FigureRow",
    "A figure that was measured on texts that the model was not trained on.",
    (
        Field("behaviour", str),
        Field("measure", str),
        Field("value", float),
        Field("bar", float | None, "The value that it had to reach."),
        Field("n", int, "How many cases it is over."),
        Field("texts", str, "The source of the cases.", lambda f: f.texts or "held-out texts"),
    ),
)
AROUND = Fields[ReadHead](
    READ_HEAD.name,
    READ_HEAD.about,
    (
        Field("layer", int, "", at("head.layer")),
        Field("head", int, "", at("head.head")),
        *READ_HEAD.all[1:],
    ),
)
READ_OUT = Fields[ReadOut](
    READOUT.name, READOUT.about, (*READOUT.all[:-1], Field("heads", list_of(AROUND)))
)
CARD = Fields[tuple[ModelFacts, ModelCard]](
    "CardRow",
    "A model's sizes and its card.",
    (
        *SIZES.within(lambda model: model[0]),
        *fields_at(
            "1",
            Field("description", str),
            Field("bos", bool, "Whether a beginning token comes before a text by default."),
            Field("named_heads", list_of(NAMED_HEAD), "", at("heads")),
            Field("figures", list_of(FIGURE)),
            Field(
                "chance_cosine",
                float | None,
                "The cosine that the nearest token reaches for a random direction.",
            ),
            Field("readouts", list_of(READ_OUT)),
        ),
    ),
)
PLUGIN = Fields[Plugin](
    "PluginRow",
    "What another package adds.",
    (
        Field("group", str, "commands, metrics or models."),
        Field("name", str, "The name of the command, the metric, or the models' scheme or type."),
        Field("package", str),
        Field("version", str, "That of the package."),
        Field("works", bool, "", lambda plugin: plugin not in FAULTS),
        Field("fault", str | None, "The reason for which it is left out.", FAULTS.get),
    ),
)
JSON = JsonOutput((SIZES, CARD, PLUGIN))


# Models as a table, and one model's card.


def listed(known: Sequence[ModelFacts], width: int) -> Iterator[RenderableType]:
    """The models that there are, a row each."""
    numbers = [Column(name, right=True) for name in ("layers", "heads", "parameters", "context")]
    rows = [
        (
            model.name,
            str(model.layers),
            f"{model.layers} × {model.heads_per_layer}",
            f"{model.parameters:,}",
            "" if model.context is None else f"{model.context:,}",
            model.where,
        )
        for model in known
    ]
    yield from listing((Column("model"), *numbers, Column("where")), rows, width)
    yield Text()
    others = "To use another model, give its id on the hub, its folder, or its GGUF file."
    yield from folded(Text(others, "dim"), width)


def render_card(facts: ModelFacts, card: ModelCard, width: int) -> Iterator[RenderableType]:
    """Render one model's sizes, its named heads, and its figures."""
    heads = f"{amount(facts.layers, 'layer')} × {amount(facts.heads_per_layer, 'head')}"
    tokens = None if facts.context is None else f"{facts.context:,} tokens"
    match facts.reads:
        case "text":
            what = f"a context of {tokens}"
        case "image":
            what = f"reads an image as {tokens}" if tokens else "reads images"
        case "speech":
            what = f"reads speech, writes at most {tokens}" if tokens else "reads speech"
    size = f"{facts.parameters:,} parameters, {what}"
    yield from folded(Text(f"{facts.name}: {heads}, {size}", style="bold"), width)
    if card.description:
        yield from folded(Text(card.description), width)
    if card.heads:
        yield Text()
        columns = (Column("head"), Column("behaviour"), Column("what it does", wraps=True))
        rows = [(str(head.head), head.behaviour, head.title) for head in card.heads]
        yield from listing(columns, rows, width)
    for texts in dict.fromkeys(figure.texts for figure in card.figures):
        yield Text()
        yield from _figures([f for f in card.figures if f.texts == texts], width)
    if card.readouts:
        yield Text()
        yield from _readouts(card.readouts, width)
    if not card.heads and not card.figures and not card.description:
        yield from folded(
            Text("It has no card, so none of its heads is named.", style="dim"), width
        )


def _figures(figures: Sequence[Figure], width: int) -> Iterator[Text]:
    """The figures on texts of one kind, with their bars where one of them has one."""
    with_bars = any(figure.bar is not None for figure in figures)
    columns = [
        Column("behaviour"),
        Column(f"measured on {figures[0].texts or 'held-out texts'}", wraps=True),
        Column("value", right=True),
        *([Column("bar", right=True)] if with_bars else []),
        Column("cases", right=True),
    ]
    rows = []
    for figure in figures:
        bar = ["" if figure.bar is None else f"{figure.bar:.2f}"] if with_bars else []
        value, cases = f"{figure.value:.3f}", f"{figure.n:,}"
        rows.append((figure.behaviour, figure.measure, value, *bar, cases))
    yield from listing(columns, rows, width)


def _readouts(readouts: Sequence[ReadOut], width: int) -> Iterator[Text]:
    """The accuracy of each read-out around each head, and before any attention."""
    names = ("before", "adds", "after", "token alone", "chance", "cases")
    columns = (Column("read-out"), Column("head"), *(Column(name, right=True) for name in names))
    rows = []
    for readout in readouts:
        for each in readout.heads:
            right = (each.before, each.added, each.after, readout.token, readout.chance)
            shares = (f"{share:.2f}" for share in right)
            rows.append((readout.name, str(each.head), *shares, f"{readout.n:,}"))
    yield from listing(columns, rows, width)


def listed_plugins(added: Sequence[Plugin], width: int) -> Iterator[RenderableType]:
    """What other packages add, a row each."""
    columns = (*map(Column, ("adds to", "name", "package")), Column("", wraps=True))
    state = {each: FAULTS.get(each, "works") for each in added}
    rows = [(p.group, p.name, f"{p.package} {p.version}", state[p]) for p in added]
    yield from listing(columns, rows, width)
    if not added:
        yield from folded(Text("No installed package adds anything.", style="dim"), width)


EVERY = Form[Sequence[ModelFacts]](
    "models",
    SIZES,
    lambda known, top, line: known,
    lambda known: amount(len(known), "model"),
    lambda known, display: listed(known, display.width),
)
ONE = Form[tuple[ModelFacts, ModelCard]](
    "models",
    CARD,
    lambda model, top, line: [model],
    lambda model: model[0].name,
    lambda model, display: render_card(model[0], model[1], display.width),
)
ADDED = Form[Sequence[Plugin]](
    "models",
    PLUGIN,
    lambda added, top, line: added,
    lambda added: amount(len(added), "plugin"),
    lambda added, display: listed_plugins(added, display.width),
)
EXAMPLES = """
attnviz models
attnviz models builtin
attnviz models --plugins
attnviz models builtin -f json | jq '.rows[].named_heads'
"""
ListPlugins: TypeAlias = Annotated[
    bool,
    panel_option(g.LOOK, "--plugins", help="List what other packages add, and whether it works."),
]
SHORT_HELP = "plugins format output quiet"

ABOUT_EMBEDDINGS = (
    "The token embeddings of builtin, compared with each other: attention without W_Q, W_K and "
    "W_V, the first step of many lessons. One head, L0H0. The embeddings were not trained to be "
    "compared."
)


@command
def models(
    session: Session,
    *,
    name: Annotated[
        str | None,
        positional(
            "NAME",
            "builtin, a hub id, a model's folder, or a GGUF file.",
            autocompletion=completion.models,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        panel_option(
            OUTPUT,
            "--save",
            metavar="DIR",
            help="Write a GGUF file as a folder that transformers reads, in float32.",
        ),
    ] = None,
    plugins: ListPlugins = False,
    output: g.RecordOutput,
) -> None:
    """List the available models, or show one model's card: named heads and figures."""
    if plugins:
        if name is not None or save is not None:
            raise UsageError(f"{option('plugins')} is about no model")
        _list_plugins(session, output)
        return
    if save is not None:
        _save(session, name, save)
    to = destination_of(session, output)
    described = None if name is None else _described(name)
    known = known_models() if described is None else [described[0]]
    result: Result[Any] = Result(EVERY, known) if described is None else Result(ONE, described)
    if to.format.name == "json":
        models = [identity_of(Source(each.name), each.parameters) for each in known]
        result = replace(result, models=models)
    deliver_result(session, to, result)


def _save(session: Session, name: str | None, target: Path) -> None:
    if name is None:
        raise UsageError(f"{option('save')} needs a model", "name a GGUF file")
    source = g.source_of(session, g.WhichModel(model=name))
    if takes := dequantised(source):
        session.note(takes)
    with as_output_error(target):
        save_folder(source, target)
    session.wrote(target)


def _list_plugins(session: Session, output: g.RecordOutput) -> None:
    """List every plugin, after each was imported."""

    def use(plugin: Plugin) -> None:
        if plugin.group == "commands":
            session.root.command.resolve_command(session.root, [plugin.name])
        elif plugin.group == "models" and not callable(plugin.load()):
            raise plugin.failed("is not a function")

    session.root.command.list_commands(session.root)  # which leaves out names that are taken,
    found("models")  # and so does this,
    len(METRICS)  # which also imports the metrics
    list(working((each for each in every_plugin() if each not in FAULTS), use))
    deliver_result(session, destination_of(session, output), Result(ADDED, every_plugin()))
    session.quiet = True  # a note of each that fails would say it again


def _described(name: str) -> tuple[ModelFacts, ModelCard]:
    """The facts in the catalog; embeddings with a card of their own, as they run no layer."""
    if name == EMBEDDINGS:
        facts, _ = describe(BUILTIN)
        counted = parameters_of(Source(BUILTIN))
        size = next(m.total for m in counted.matrices if m.source.endswith("wte.weight"))
        alone = replace(facts, name=name, layers=1, heads_per_layer=1, parameters=size)
        return alone, ModelCard(name, ABOUT_EMBEDDINGS, bos=False)
    if name in COUNTED and name not in KNOWN_MODELS:
        raise ModelError(
            f"{name!r} cannot be run, because its weights are not public",
            f"attnviz params {name} counts its parameters; it knows {', '.join(COUNTED)}",
        )
    return describe(name)
