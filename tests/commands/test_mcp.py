"""An agent gets answers, pictures and sentences from tools, and nothing from outside the root."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

import attnviz
from attnviz.cli import COMMANDS
from attnviz.commands.mcp import LazyModels, Tools, server_of
from attnviz.errors import ExitStatus
from attnviz.kit.calling import Offered, offered
from attnviz.kit.intervene import told_of
from attnviz.kit.values import AnyModel, loaded
from tests.conftest import Run

ROOT = Path("docs/images").resolve()
DRAWN = "show explain why heads generate ablate patch circuit compare".split()
TEXT = "a fluffy blue creature roamed the forest . the creature was"
BARK = "Bark is very cute and he is a dog"
BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
ON_IMAGE = {"image": "shapes-1.png", "model": "shapes"}
ASKED = "what is left of the circle?"
SHORT, HEADS = "a fluffy blue creature", "L4H0,L4H1,L3H1"
MOLES = ["American shrew mole", "one mole of carbon dioxide"]


def tools(*more: Offered) -> Tools:
    found = offered(COMMANDS) | {each.name: each for each in more}
    return Tools(found, DRAWN, LazyModels(loaded, ["builtin", "shapes", "shapes-vit"]), ROOT)


def called(name: str, arguments: dict[str, Any], *more: Offered) -> tuple[bool, list[Any]]:
    """Whether a call in memory failed, and the content of its result."""

    async def call() -> tuple[bool, list[Any]]:
        async with Client(server_of(tools(*more))) as client:
            found = await client.call_tool(name, arguments)
            return found.is_error, list(found.content)

    return asyncio.run(call())


QUESTIONS: list[tuple[str, str, dict[str, Any], str, object]] = [
    ("Which head links he to Bark?",
     "show", {"given": BARK, "heads": "L4H1", "query": "he"}, "patterns 0 0 1", 0.99944),
    ("Does this head matter for the next word?",
     "ablate", {"text": TEXT, "answer": "fluffy", "heads": "L4H0"}, "rows 0 change", -7.34645),
    ("Which head matters most?",
     "ablate", {"text": TEXT, "answer": "fluffy", "top": 1}, "rows 0 layer", 4),
    ("Which part carries the difference between two texts?",
     "patch", {"text": BLUE, "source": RED, "heads": "L4H0"}, "rows 0 share", 0.86896),
    ("Do these heads do it by themselves?",
     "circuit", {"text": BLUE, "source": RED, "heads": HEADS}, "rows 0 faithfulness", 0.86921),
    ("Why does this head attend there?",
     "why", {"text": SHORT, "head": "L3H2", "query": 4, "key": "blue"}, "contrast", -0.01011),
    ("What is this head, in general?",
     "heads", {"sort": "induction", "top": 1}, "rows 0 role", "induction"),
    ("What is this head, on this text?",
     "heads", {"text": TEXT, "heads": "L3H2"}, "rows 0 distance", 1.45723),
    ("What comes next?",
     "predict", {"text": TEXT, "top": 1}, "rows 0 token", "fluffy"),
    ("How much rather blue than red?",
     "predict", {"text": BLUE, "answer": "blue", "versus": "red"}, "rows 0 measured", 10.35694),
    ("What did the answer attend to?",
     "generate", {"prompt": TEXT, "max_new_tokens": 1}, "rows 1 share", 0.91862),
    ("Which part of an image does a word of a question attend to?",
     "show", {**ON_IMAGE, "given": ASKED, "heads": "L3H0", "query": "circle", "key": "@r6c1"},
     "patterns 0 0 0", 0.79210),
    ("What does the image answer?",
     "predict", {**ON_IMAGE, "text": ASKED, "top": 1}, "rows 0 token", "a"),
    ("How is a weight computed?",
     "explain", {"text": SHORT, "head": "L3H2", "query": "creature"}, "", "0.5248"),
    ("How do two texts differ?",
     "compare", {"texts": MOLES, "query": "mole"}, "rows 0 difference", 0.75190),
    ("How do two models differ?",
     "compare", {"texts": ["a shrew mole"], "against": "builtin"}, "rows 0 similarity", 1.0),
    ("How is the text split into tokens?",
     "tokens", {"text": TEXT}, "rows 11 id", 562),
]  # fmt: skip
"""Questions of docs/agents.md; what is expected was read from the command line."""


@pytest.mark.parametrize(("question", "tool", "arguments", "path", "expected"), QUESTIONS)
def test_a_tool_answers_a_question(
    question: str, tool: str, arguments: dict[str, Any], path: str, expected: object
) -> None:
    failed, (headline, *more) = called(tool, arguments)
    assert not failed, (question, headline.text)
    keys = [int(key) if key.isdigit() else key for key in path.split()]
    found = reduce(lambda value, key: value[key], keys, json.loads(more[0].text)) if keys else None
    if found is None:  # it is too long to read
        assert str(expected) in headline.text
    else:
        assert found == (pytest.approx(expected, abs=2e-4) if type(found) is float else expected)


def test_a_picture_comes_with_those_that_draw_one() -> None:
    for name, arguments in (
        ("show", {"given": TEXT}),
        ("ablate", {"text": TEXT, "layers": 4}),
        ("generate", {"prompt": TEXT, "max_new_tokens": 2}),
        ("heads", {"text": TEXT}),
    ):
        failed, content = called(name, {**arguments, "picture": True})
        assert not failed
        assert (content[-1].type, content[-1].mime_type) == ("image", "image/png")
        assert b64decode(content[-1].data).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("shwo", {}, "there is no tool 'shwo'; did you mean show?"),
        ("show", {"givn": "a"}, "show has no argument 'givn'; did you mean given?"),
        ("tokens", {"text": "a", "picture": True}, "tokens has no argument 'picture'; it takes"),
        ("show", {"given": "a", "picture": 1}, "picture is not a boolean"),
        ("show", {"given": "a", "heads": "L9H9"}, "L9H9"),
        ("show", {"given": "../x.png", "model": "shapes-vit"}, "is not in the folder"),
        ("explain", {"matrices": "/etc/passwd"}, "'/etc/passwd' is not in the folder"),
        ("predict", {"text": "a", "model": "/etc"}, "is not a loaded model; give builtin"),
        ("broken", {"text": "a"}, "this is a bug (ZeroDivisionError: division by zero)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_sentence(
    name: str, arguments: dict[str, Any], told: str
) -> None:
    def broken(text: str, model: AnyModel = "builtin") -> object:
        return len(text) / 0

    failed, content = called(name, arguments, Offered("broken", broken, "Fail."))
    assert failed
    assert [told in each.text for each in content] == [True]
    assert "Traceback" not in content[0].text


def test_a_result_too_long_to_read_is_told_in_the_words_of_the_terminal() -> None:
    _, content = called("explain", {"text": TEXT})
    assert "How L3H2 computes" in content[0].text
    assert "characters is left out; ask for less of it." in content[1].text


def test_a_run_is_followed_and_ends_when_its_request_is_cancelled() -> None:
    begun, told = list[int](), list[tuple[float, float | None]]()

    def slow(text: str, model: AnyModel = "builtin") -> object:
        for number in told_of(range(int(text))):
            begun.append(number)
            time.sleep(0.01)
        return attnviz.tokens("a", "builtin")

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        assert message is None
        told.append((progress, total))

    async def story() -> None:
        server = server_of(tools(Offered("slow", slow, "Be slow.")))
        async with Client(server, mode="legacy") as client:
            await client.call_tool("slow", {"text": "3"}, progress_callback=tell)
            long = asyncio.create_task(client.call_tool("slow", {"text": "9999"}))
            while len(begun) < 5:
                await asyncio.sleep(0.01)
            long.cancel()
            after = await client.call_tool("slow", {"text": "0"})  # it waits for the other
            assert not after.is_error

    asyncio.run(story())
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert len(begun) < 1000


def test_the_program_serves_an_agent_over_its_standard_streams(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes((ROOT / "shapes-1.png").read_bytes())
    arguments = ["-m", "attnviz", "mcp", "-m", "builtin", "-m", "shapes-vit"]
    program = StdioServerParameters(
        command=sys.executable,
        args=[*arguments, "--root", str(tmp_path)],
        env=dict(os.environ),
    )

    async def story() -> None:
        async with Client(program) as client:
            assert "builtin, shapes-vit" in (client.instructions or "")
            listed = (await client.list_tools()).tools
            assert [each.name for each in listed] == list(offered(COMMANDS))
            draws = [t.name for t in listed if "picture" in t.input_schema["properties"]]
            assert draws == DRAWN
            found = await client.call_tool("show", {"given": "a.png", "model": "shapes-vit"})
            assert not found.is_error
            found = await client.call_tool("predict", {"text": TEXT, "top": 1})
            assert '"token": "fluffy"' in str(found.content)

    asyncio.run(story())


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_only_messages_are_printed_and_a_signal_ends_it_at_once() -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "a", "version": "1"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    with subprocess.Popen(
        [sys.executable, "-m", "attnviz", "mcp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdin is not None is not program.stdout
        program.stdin.write(f"no JSON\n{json.dumps(hello)}\n")
        program.stdin.flush()
        answer = json.loads(program.stdout.readline())
        began = time.monotonic()
        program.send_signal(signal.SIGINT)  # while it waits for the next message
        assert program.wait(timeout=30) == 130
        assert time.monotonic() - began < 5  # one, on a computer that does nothing else
        assert (answer["result"]["serverInfo"]["name"], program.stdout.read()) == ("attnviz", "")


def test_without_the_extra_it_says_how_to_install_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    assert run("mcp", "--help").status == ExitStatus.OK
    ended = run("mcp", stdin=b"")
    assert ended.status == ExitStatus.USAGE
    assert "tools for agents need mcp, which is not installed; install it: " in ended.err
    assert "is not a folder" in run("mcp", "--root", str(tmp_path / "none")).err
