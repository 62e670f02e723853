"""What every test may use: tiny seeded models, the command line inside this process, a browser."""

import functools
import gc
import io
import logging
import multiprocessing
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

# No test may reach a hub; the hub's library reads this once, when it is imported.
os.environ["HF_HUB_OFFLINE"] = "1"
# The models are tiny, and threads would wait for each other longer than they compute: with one
# thread, in this process and in those that it starts, the tests take half as long.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from hypothesis import settings
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from attnviz.cli import main
from attnviz.console import Environment
from attnviz.errors import ExitStatus
from attnviz.inputs.text import Stdin
from attnviz.kit import prepare, values
from attnviz.kit.session import Session
from attnviz.models import chat, rendering
from attnviz.models.catalog import Source
from attnviz.models.folder.config import GPTConfig
from attnviz.models.loaded import LoadedModel
from attnviz.models.placement import BUNDLED
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import save_checkpoint
from attnviz.models.tokenizer import END
from tests.browsing import Open

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

# Objects of torch and transformers and the tests themselves live as long as the process: to look
# for garbage among a million of them takes a quarter of the time of collecting the tests.
gc.set_threshold(20_000)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


# A test measures no time: a machine that pauses is no failure. Examples are drawn anew each run.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")


slow = functools.partial(pytest.param, marks=pytest.mark.slow)
"""A case of a parametrized test that stands behind `-m slow`."""


def some(cases: Sequence[Any]) -> list[Any]:
    """Every third of many like cases; the others stand behind `-m slow`."""
    return [slow(case) if number % 3 else case for number, case in enumerate(cases)]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder of all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """No test sees the settings of whoever runs it, or what the program remembers for them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("ATTNVIZ_CONFIG", "")
    for name in ("ATTNVIZ_MODEL", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


KEPT = {*BUNDLED}
"""The models, by name or folder, that no test changes."""


@pytest.fixture(scope="session", autouse=True)
def _models_that_stay_are_loaded_once() -> Iterator[None]:
    """For commands and functions that are given a name: they leave the model as it was, and to load
    one takes longer than to run it on a short text. What `attnviz.load_model` returns is new."""
    read, kept = prepare.load_model, functools.cache(prepare.load_model)

    def load(at: Source) -> LoadedModel:
        return (kept if at.name in KEPT else read)(at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "load_model", load)
        patch.setattr(values, "run_load_model", load)
        yield


def loaded_once(folder: Path) -> Path:
    """The folder of a model that no test changes."""
    KEPT.add(str(folder))
    return folder


IN_ITS_OWN_PROCESS = chat._in_a_process


@pytest.fixture(scope="session", autouse=True)
def _chats_are_rendered_in_this_process() -> Iterator[None]:
    """The process of each template takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat, "_in_a_process", rendering.answer)
        yield


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chats are rendered in a process of their own, as they are for users."""
    monkeypatch.setattr(chat, "_in_a_process", IN_ITS_OWN_PROCESS)


def bytes_tokenizer() -> Tokenizer:
    """Every byte a token; 257 in all with `<|endoftext|>`, which is 0."""
    alphabet = [END, *sorted(ByteLevel.alphabet())]
    tokenizer = Tokenizer(BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([END])
    return tokenizer


def tiny_model(seed: int = 0, **sizes: int) -> GPT:
    """A seeded model with a different odd size on every axis, weights large enough to matter."""
    config = {
        "vocab_size": 257,
        "n_positions": 61,
        "n_embd": 21,
        "n_layer": 2,
        "n_head": 3,
        "n_inner": 43,
    }
    torch.manual_seed(seed)
    model = GPT(GPTConfig(**{**config, **sizes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    return model.eval().requires_grad_(False)


@pytest.fixture(scope="session")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that transformers could have saved: a tiny random GPT-2 over bytes."""
    folder = tmp_path_factory.mktemp("gpt2") / "tiny"
    save_checkpoint(folder, tiny_model(), bytes_tokenizer())
    return loaded_once(folder)


@pytest.fixture(scope="session")
def llava_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny LLaVA, which crops the middle of an image to 8 × 8 tokens."""
    from tests.vision.zoo import species  # it takes seconds to import

    return loaded_once(species("llava").make(tmp_path_factory.mktemp("llava") / "llava"))


@pytest.fixture
def gpt2_copy(gpt2_folder: Path, tmp_path: Path) -> Path:
    """The same folder, for a test that changes it."""
    return shutil.copytree(gpt2_folder, tmp_path / "copy")


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What reaches the root logger."""
    records = list[logging.LogRecord]()
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield records
    logging.getLogger().removeHandler(handler)


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it wrote."""

    status: ExitStatus
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run a command line in this process: `run("show", "a text", stdin=b"", terminal=False)`."""

    def run(
        *arguments: str,
        stdin: bytes | None = None,
        terminal: bool = False,
        variables: dict[str, str] | None = None,
        columns: int | None = None,
    ) -> Result:
        out, err = io.BytesIO(), io.BytesIO()
        kind = Terminal if terminal else io.TextIOWrapper
        environment = Environment(
            kind(out, "utf-8", write_through=True),
            io.TextIOWrapper(err, "utf-8", write_through=True),
            variables or {},
            columns,
        )
        source = Stdin(io.BytesIO(stdin or b""), is_terminal=stdin is None)
        status = main(arguments, Session(environment, source))
        environment.stdout.flush()
        return Result(status, out.getvalue(), err.getvalue().decode())

    return run


def forkserver() -> Any:
    """The context of processes that are forked from one that has imported what workers need."""
    context = SPAWNED("forkserver")
    context.set_forkserver_preload(["tests.forked"])
    return context


SPAWNED = multiprocessing.get_context


@pytest.fixture(scope="session", autouse=True)
def _workers_of_scans_are_forked() -> Iterator[None]:
    """From a process that has imported torch, instead of importing it each."""
    context = forkserver()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing, "get_context", lambda _=None: context)
        yield


@pytest.fixture
def spawned_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start as they do for users, with the signals and variables of this moment."""
    monkeypatch.setattr(multiprocessing, "get_context", SPAWNED)


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked from a process that has imported torch, instead of importing it each."""
    from attnviz.commands.train import loop

    monkeypatch.setattr(loop, "get_context", lambda _: forkserver())


CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    if not CHROMIUM.exists():
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM),
            args=["--no-sandbox", "--disable-background-networking", "--disable-sync"],
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def kept_page(browser: "Browser") -> Iterator["Page"]:
    """A page that the tests of a file use in turn: a new one takes as long as to open a file."""
    context = browser.new_context(viewport=VIEWPORT, offline=True)
    yield context.new_page()
    context.close()


VIEWPORT: "ViewportSize" = {"width": 1280, "height": 900}


@pytest.fixture
def opened(kept_page: "Page", tmp_path: Path) -> Iterator[Open]:
    """Opens a page from disk with the network cut off; no request and no error may come of it."""
    wrong: list[str] = []
    requests: list[str] = []
    listeners: dict[str, Callable[[Any], None]] = {
        "pageerror": lambda error: wrong.append(str(error)),
        "console": lambda said: wrong.append(said.text),
        "dialog": lambda dialog: wrong.append(dialog.message),
        "request": lambda asked: requests.append(asked.url),
    }
    pages: list[Page] = []

    def open_page(
        written: str | Path, fragment: str = "", ready: str = "body[data-ready]"
    ) -> "Page":
        file = tmp_path / "page.html"
        if isinstance(written, Path):
            file = written
        else:
            file.write_text(written, encoding="utf-8")
        page = kept_page.context.new_page() if pages else kept_page
        pages.append(page)
        for event, listener in listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]
        page.goto(f"file://{file}{fragment}")
        page.wait_for_selector(ready)
        return page

    yield open_page
    for page in pages[1:]:
        page.close()
    if pages:
        # as a new page is: empty, light, and with the pointer outside
        kept_page.goto("about:blank")
        kept_page.mouse.move(-1, -1)
        kept_page.emulate_media(color_scheme="light")
        kept_page.set_viewport_size(VIEWPORT)
        for event, listener in listeners.items():
            kept_page.remove_listener(event, listener)
    assert wrong == []
    assert all(url.startswith(("file:", "blob:")) for url in requests)
