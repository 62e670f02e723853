"""The progress of a scan: the share that is done, the rate, the time left."""

import io
from collections.abc import Sequence

import pytest

from attnviz.commands.scan.plan import Done, SampleTokens, TakeExamples
from attnviz.commands.scan.shown import LEAST_BAR, Phase, Watching
from attnviz.console import Environment
from attnviz.corpus.places import FilePart, Shard
from attnviz.draw.titles import duration, percent
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session

SIZES = 10, 300, 90, 600  # bytes


def shards(sizes: Sequence[int] = SIZES) -> list[Shard]:
    return [Shard(i, (FilePart("a", 7, 7 + size),)) for i, size in enumerate(sizes)]


def after(phase: Phase, *ended: tuple[Shard, float]) -> Phase:
    for shard, seconds in ended:
        phase.add(Done(1, 2 * shard.size, size=shard.size), seconds)
    return phase


def test_the_share_is_one_of_bytes_and_not_of_shards() -> None:
    every = shards()
    phase = after(Phase.of("shards", every, every), (every[1], 6.0))
    assert phase.said(6.0)[0] == "30%"  # 300 of 1,000 bytes, and one of four shards
    assert after(phase, (every[3], 18.0)).said(18.0)[0] == "90%"


def test_the_time_left_comes_from_the_rate_so_far_and_runs_down() -> None:
    every = shards()
    phase = after(Phase.of("shards", every, every), (every[1], 6.0), (every[2], 13.0))
    assert phase.left(13.0) == pytest.approx(610 / 390 * 13)
    assert phase.left(15.0) == pytest.approx(610 / 390 * 13 - 2)
    assert phase.left(1000.0) == 0
    assert phase.said(13.0) == ["39%", "20 seconds left", "60 tokens/s", "2 of 4", "0:00:13"]


def test_a_scan_that_goes_on_counts_earlier_shards_in_the_share_but_not_in_the_rate() -> None:
    every = shards()
    phase = Phase.of("shards", every[:3], every)
    assert phase.said(0.0) == ["60%", "1 of 4", "0:00:00"]
    assert phase.left(5.0) is None
    assert after(phase, (every[1], 6.0)).left(6.0) == pytest.approx(100 / 300 * 6)


def test_one_shard_that_runs_has_no_share_and_shows_the_time() -> None:
    every = shards([1 << 30])
    assert Phase.of("shards", every, every).said(3725.9) == ["0 of 1", "1:02:05"]


def test_a_share_that_is_small_is_not_none() -> None:
    every = shards([1, 999])
    phase = after(Phase.of("shards", every, every), (every[0], 2.0))
    assert phase.said(2.0)[0] == "less than 1%"


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (1, 6, "17%"),
        (1, 204, "less than 1%"),
        (1203, 1204, "99%"),  # the whole alone is 100%
        (6, 6, "100%"),
    ],
)
def test_a_share_is_rounded_to_the_nearest_percent(part: int, whole: int, said: str) -> None:
    assert percent(part, whole) == said


def test_parts_of_tables_have_the_size_of_their_windows() -> None:
    (shard,) = shards([5])
    assert SampleTokens(0, [(shard, [3, 4]), (shard, [7])], range(2)).size == 3
    assert TakeExamples(0, [(shard, {3: [], 9: []})]).size == 2


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 second"),
        (119, "119 seconds"),
        (121, "2 minutes"),
        (7300, "2 hours"),
        (259200, "3 days"),
    ],
)
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize("width", [200, 60, 40, 20])
def test_the_line_behind_the_bar_fits_and_keeps_what_matters_most(
    width: int, terminal_session: Session
) -> None:
    session, every = terminal_session, shards()
    session.consoles.err.width = width
    with session.bar("{task.fields[said]}", times=False) as bar:
        watching = Watching(session, bar)
        watching.begin("shards", every, every)
        watching.did(Done(3, 600, size=300))
        assert len(str(watching)) <= max(width - LEAST_BAR, len("shards: 30%"))
        assert str(watching).startswith("shards: 30%")
        (task,) = bar.tasks
        assert (task.completed, task.total) == (300, 1000)
        watching.begin("examples", [], [])  # nothing is run again: no bar
        assert not bar.tasks[0].visible


def test_a_bar_without_a_share_has_no_end(terminal_session: Session) -> None:
    with terminal_session.bar("{task.fields[said]}", times=False) as bar:
        Watching(terminal_session, bar).begin("shards", shards(), shards())
        assert bar.tasks[0].total is None


def test_an_interruption_tells_what_is_kept_and_how_to_go_on() -> None:
    stderr, every = io.StringIO(), shards()
    session = Session(Environment(io.StringIO(), stderr, {"NO_COLOR": "1"}), Stdin(None, False))
    with session.bar("{task.fields[said]}", times=False) as bar:
        watching = Watching(session, bar)
        watching.begin("shards", every, every)
        watching.did(Done(3, 600, size=300))
        watching.stopped()
    said = "1 of 4 shards are counted; the same command continues from there\n"
    assert stderr.getvalue().endswith(said)


@pytest.fixture
def terminal_session() -> Session:
    """A session whose stderr is nowhere."""
    return Session(Environment.of_process(), Stdin(None, False), quiet=True)
