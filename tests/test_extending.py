"""What another package adds: that of docs/example, installed, and some that do not work."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import contextlib, io, json, sys
import attnviz
from attnviz.cli import main
from attnviz.kit.session import process_session

def scan(folder):
    "Scan in this process, without the time that a worker takes to start."
    try:
        model = attnviz.load_model()
        attnviz.scan("words.txt", output=folder, model=model, heads="L1H2,L4H0")
    except attnviz.AttnvizError as error:
        print(error, file=sys.stderr, flush=True)
        return error.status
    return 0

ended = []
for arguments in json.load(sys.stdin):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        scans = arguments[0] == "scan"
        status = scan(arguments[1]) if scans else main(arguments, process_session())
    texts = [each.buffer.getvalue().decode() for each in (out, err)]
    ended.append([int(status), *texts, sorted(n for n in sys.modules if n.count(".") < 2)])
print(json.dumps(ended))
"""
TEXT = "a fluffy blue creature"


class Ended(NamedTuple):
    """The end of a command: its status, its output, and the modules that are loaded then."""

    status: int
    out: str
    err: str
    loaded: Sequence[str]


def run(
    *commands: str | Sequence[str], path: Sequence[Path], at: Path = ROOT, **variables: str
) -> list[Ended]:
    """Run commands in one process, in a folder, with these others before attnviz on the path."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT))),
            "COLUMNS": "120",  # room for a metric more
            **variables,
        },
        cwd=at,
        input=json.dumps([c.split() if isinstance(c, str) else c for c in commands]),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return [Ended(*each) for each in json.loads(ended.stdout)]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which docs/example is installed, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([*command, str(ROOT / "docs" / "example")], check=True)
    return folder


def package(folder: Path, name: str, **groups: str) -> Path:
    """A folder with the metadata of a package; `groups`: the lines of each group."""
    info = folder / f"{name.replace('-', '_')}-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    lines = (f"[attnviz.{group}]\n{lines}\n" for group, lines in groups.items())
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


# A command.


def test_a_command_is_listed_and_completed_without_being_imported(example: Path) -> None:
    asked = "--help", "show --help", "params builtin"
    for ended in run(*asked, path=[example]):
        assert (ended.status, ended.err) == (0, "")
        assert not any(name.startswith("attnviz_example") for name in ended.loaded)
    listed, *_ = run("--help", path=[example])
    assert "  sinks     The weight on first tokens, as a command of another package" in listed.out
    (ended,) = run("sink", path=[example])
    assert ended.err == "attnviz: no such command 'sink'; did you mean 'sinks'?\n"
    typed = {
        "COMP_WORDS": "attnviz help si",
        "COMP_CWORD": "2",
        "_ATTNVIZ_COMPLETE": "complete_bash",
    }
    (completed,) = run("help", path=[example], **typed)
    assert "sinks" in completed.out.split()


def test_a_command_works_as_one_of_attnviz_does(example: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[sinks]\nabove = 0.8\n")
    commands = [
        "sinks --help",
        "help sinks",
        "schema sinks",
        "schema",
        "--help -f json",
        "config sinks",
    ]
    settings = {"ATTNVIZ_CONFIG": str(tmp_path / "config.toml")}
    help_, same, schema, schemas, whole, config, found = run(
        *commands, ["sinks", TEXT, "-f", "json"], path=[example], **settings
    )
    assert help_.out == same.out
    assert "--above W" in help_.out
    assert "SinkRow" in json.loads(schema.out)["$defs"]
    assert "sinks" in schemas.out.split()
    assert json.loads(whole.out)["commands"][-1]["name"] == "sinks"
    assert "0.8" in next(line for line in config.out.splitlines() if "above" in line)
    written = json.loads(found.out)
    assert 0 < len(written["rows"]) < 20  # some heads, and not all
    assert written["made"]["options"]["above"] == 0.8


def test_python_checks_an_option_as_the_command_line_does(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import attnviz

    monkeypatch.syspath_prepend(str(example))
    from attnviz_example.sinks import sinks  # type: ignore[import-not-found]

    with pytest.raises(attnviz.AttnvizError, match="above=2 is out of range"):
        sinks(TEXT, above=2)


# A metric.

HEADS = "heads --file words.txt --layer 4"
MEASURING = (
    f"{HEADS} --sort second -f json -o heads.json",
    [*HEADS.split(), "--role", "second token", "-o", "heads.txt"],
    "schema heads -o schema.json",
    "scan scanned",
    "atlas scanned -f csv -o atlas.csv",
    "atlas scanned --sort second -o atlas.txt",
    "atlas scanned --head L1H2 -o head.txt",
    "atlas scanned -o atlas.html",
    "atlas scanned --export headvis -o tree",
)


@pytest.fixture(scope="module")
def folder(example: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second")
    (folder / "words.txt").write_text("the cat sat on the mat and the cat ran\n")
    for ended in run(*MEASURING, path=[example], at=folder):
        assert ended.status == 0, ended.err
    return folder


def test_heads_measure_a_metric_sort_by_it_and_have_its_role(folder: Path) -> None:
    rows = json.loads((folder / "heads.json").read_text())["rows"]
    names = list(rows[0])
    assert names[names.index("second") + 1] == "second_error"
    values = [row["second"] for row in rows]
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < values[0] < 1
    row = json.loads((folder / "schema.json").read_text())["$defs"]["HeadRow"]
    assert row["properties"]["second"]["description"] == "Mean weight on the second token."
    table = (folder / "heads.txt").read_text()
    assert "  2nd\n" in table
    assert "second token: 2nd ≥ 0.01" in table


def _atlas(folder: Path) -> list[dict[str, str]]:
    with (folder / "atlas.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_scan_counts_a_metric_and_the_atlas_shows_it(folder: Path) -> None:
    rows = _atlas(folder)
    assert {row["second_documents"] for row in rows} == {"1"}
    assert all(0 < float(row["second"]) < 1 for row in rows)
    assert "  2nd\n" in (folder / "atlas.txt").read_text()
    assert "\nsecond " in (folder / "head.txt").read_text()
    assert '"says":"weight on the second token"' in (folder / "atlas.html").read_text()
    (tree,) = folder.glob("tree/*/headvis/*/scatter_data.json")
    assert json.loads(tree.read_text())[0]["second_over_tokens"] > 0


def test_a_scan_is_read_with_other_metrics_than_it_was_made_with(
    folder: Path, example: Path, tmp_path: Path
) -> None:
    alone = package(tmp_path, "alone", metrics="second = second:ROW")
    row = 'Metric("second", "2nd", "weight", of=lambda rows: (rows.sums.sum(1), 1.0))'
    (alone / "second.py").write_text(f"from attnviz.records.metrics import Metric\nROW = {row}\n")
    without = run("atlas scanned -f csv -o atlas.csv", "scan plain", path=[], at=folder)
    assert [ended.status for ended in without] == [0, 0]
    assert not any("second" in name for name in _atlas(folder)[0])
    atlas = "atlas plain -f csv -o atlas.csv", "atlas plain", "atlas plain --head L1H2"
    *shown, refused = run(*atlas, "scan plain", path=[example], at=folder)
    assert [ended.status for ended in shown] == [0, 0, 0]
    assert {(row["second"], row["second_documents"]) for row in _atlas(folder)} == {("", "0")}
    assert refused.status == 2
    assert "holds another scan (another versions)" in refused.err
    # a metric without a sum has no value in a scan
    summed = run("scan alone", "atlas alone -f csv -o atlas.csv", path=[alone], at=folder)
    assert [ended.status for ended in summed] == [0, 0]
    assert {(row["second"], row["second_documents"]) for row in _atlas(folder)} == {("", "0")}


# A model.

TYPE = """
from transformers import AutoConfig, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

class Config(GPT2Config):
    model_type = "own"

class Model(GPT2LMHeadModel):
    config_class = Config

AutoConfig.register("own", Config)

def load(folder):
    return Model.from_pretrained(folder), PreTrainedTokenizerFast.from_pretrained(folder)

def fail(folder):
    raise ValueError("not today")
"""


def test_a_model_is_found_by_its_scheme_and_loaded_by_its_type(
    example: Path, gpt2_folder: Path, tmp_path: Path
) -> None:
    path = [example, package(tmp_path, "own-type", models="own = own:load\nfails = own:fail")]
    (tmp_path / "own.py").write_text(TYPE)
    folder = shutil.copytree(gpt2_folder, tmp_path / "model")
    store = {"MODEL_STORE": str(tmp_path)}
    form = "-m store:model -f json"
    shown, counted, split = run(
        f"show abc {form}", "params store:model", f"tokens abc {form}", path=path, **store
    )
    assert json.loads(shown.out)["model"]["name"] == "store:model"
    assert json.loads(shown.out)["model"]["engine"] == "native"
    assert counted.status == split.status == 0
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own"}))
    own, missing, failed = run(
        f"show abc {form} --dtype bfloat16",
        "show abc -m fails:x",
        "show abc -m nothing:x",
        path=path,
        **store,
    )
    about = json.loads(own.out)["model"]
    assert (about["architecture"], about["engine"], about["dtype"]) == (
        "own",
        "transformers",
        "bfloat16",
    )
    assert (missing.status, failed.status) == (4, 4)
    assert (
        "the plugin own-type (fails) cannot find 'fails:x': ValueError: not today;" in missing.err
    )


# Plugins that do not work.


def test_a_plugin_that_does_not_work_is_named_once_and_the_rest_works(
    example: Path, tmp_path: Path
) -> None:
    commands = "broken = nowhere\nshow = attnviz_example.sinks\nempty = json\nends = ends"
    metrics = "lost = nowhere:ROW\nodd = json:loads\nlate = late:ROW\nsecond = late:ROW"
    broken = package(tmp_path, "z-broken", commands=f"{commands}\nsinks = json", metrics=metrics)
    (broken / "ends.py").write_text("raise SystemExit(3)\n")
    row = 'ROW = Metric("late", "prev", "lateness")\n'
    (broken / "late.py").write_text(f"from attnviz.records.metrics import Metric\n{row}")
    path = [broken, example]
    heads, again = run(["heads", TEXT], ["heads", TEXT, "--sort", "second"], path=path)
    assert heads.status == again.status == 0
    why = "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"
    taken = "as attnviz-example has one of this name"
    assert heads.err.splitlines() == [
        f"note: the plugin z-broken (second) is left out, {taken}; attnviz works without it",
        f"note: the plugin z-broken (lost) {why}; attnviz works without it",
        "note: the plugin z-broken (odd) is neither a Metric nor a Metric and its FastSum; "
        "attnviz works without it",
        "note: the plugin z-broken (late) is left out, as there is a metric 'prev' already; "
        "attnviz works without it",
    ]
    assert again.err == ""
    called, quiet, shown = run("broken", ["heads", TEXT, "-q"], ["show", TEXT], path=path)
    assert called.status == 2
    assert called.err.splitlines()[0] == (
        f"attnviz: the plugin z-broken (broken) {why}; update z-broken, or uninstall it."
    )
    assert (quiet.status, quiet.err) == (0, "")
    assert (shown.status, shown.err) == (0, "")
    every = run("--help -f json", "config", "schema", path=path)
    assert [ended.status for ended in every] == [0, 0, 0]
    assert "".join(ended.err for ended in every).count("(broken)") == 1
    listed, none = run("models --plugins -f csv", "models --plugins builtin", path=path)
    rows = {
        (r["group"], r["name"], r["package"]): r for r in csv.DictReader(listed.out.splitlines())
    }
    assert listed.err == ""
    assert {name for name, row in rows.items() if row["works"] == "true"} == {
        ("commands", "sinks", "attnviz-example"),
        ("metrics", "second", "attnviz-example"),
        ("models", "store", "attnviz-example"),
    }
    faults = {name: row["fault"] for (_, name, of), row in rows.items() if of == "z-broken"}
    assert faults == {
        "broken": why,
        "show": "is left out, as attnviz has one of this name",
        "empty": "is not a command: AttributeError: module 'json' has no attribute 'EXAMPLES'",
        "ends": "cannot be imported: SystemExit: 3",
        "sinks": f"is left out, {taken}",
        "lost": why,
        "odd": "is neither a Metric nor a Metric and its FastSum",
        "late": "is left out, as there is a metric 'prev' already",
        "second": f"is left out, {taken}",
    }
    assert none.status == 2
    (empty,) = run("models --plugins", path=[])
    assert "No installed package adds anything." in empty.out


def test_an_option_without_a_default_has_to_be_given() -> None:
    import inspect

    from attnviz.kit import options as g
    from attnviz.kit.option import command_of, feature

    @feature()
    def rank(text: str, *, token: Annotated[str, g.look_option("--token", help="A word.")]) -> None:
        """Rank."""

    @command_of(rank, "text token")
    def command_line(session: Any, call: Any, *, text: g.TextIn) -> None:
        """Rank."""

    token = inspect.signature(command_line).parameters["token"]
    assert token.default is inspect.Parameter.empty
