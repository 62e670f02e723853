"""Hostile requests are refused or answered, and the next honest one works; nothing grows."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.commands.serve.conftest import TOKEN, Here

TEXT = "a fluffy blue creature"
JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def _honest_after(here: Here) -> Iterator[None]:
    yield
    assert [each["part"] for each in here.parts("/run", {"text": TEXT})] == ["patterns"]
    assert [each["part"] for each in here.parts("/rest", {"text": TEXT})] == ["reads", "layer"]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (421, {"host": "evil.example"}),  # a name that leads here (DNS rebinding)
        (421, {"host": "localhost.evil.example:80"}),
        (421, {"host": "[::1"}),
        (421, {"host": ""}),
        (421, {"host": "127.0.0.1.evil.example"}),
        (403, {"origin": "https://evil.example"}),
        (403, {"origin": "null"}),  # a sandboxed frame, or a file
        (403, {"origin": "http://127.0.0.1:1"}),  # another server of this computer
        (401, {"authorization": "Bearer wrong"}),
        (401, {"authorization": f"Bearer {TOKEN[:-1]}"}),
        (401, {"authorization": ""}),
        (401, {"authorization": "Bearer \xff\xfe"}),
        (401, {"cookie": "attnviz-1=" + TOKEN, "authorization": ""}),
        (415, {"content-type": "text/plain"}),  # what a form of another page can send
        (415, {"content-type": "multipart/form-data"}),
        (413, {"content-length": str(1 << 40)}),
    ],
)
def test_a_stranger_is_refused(here: Here, status: int, headers: dict[str, str]) -> None:
    found, told, body = here.ask("POST", "/v1/show", {"given": TEXT}, headers)
    assert found == status
    assert TOKEN.encode() not in body
    assert told["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in told


@pytest.mark.parametrize(
    ("status", "method", "path"),
    [
        (405, "PUT", "/run"),
        (405, "OPTIONS", "/v1/show"),  # no other page is told that it may ask
        (404, "GET", "/../../etc/passwd"),
        (404, "GET", "/%2e%2e/%2e%2e/etc/passwd"),
        (404, "POST", "/v1/train"),
        (404, "POST", "/v1/scan"),
        (404, "POST", "/v1/%00"),
        (404, "GET", "/" + "a" * 9000),
        (400, "GET", "/?model=/etc/passwd"),
    ],
)
def test_there_is_nothing_else(here: Here, status: int, method: str, path: str) -> None:
    found, _, body = here.ask(method, path, {} if method == "POST" else None)
    assert found == status
    assert b"root:" not in body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe{}",
        b'{"text": "\\ud800"}',  # half of a pair
        b'{"text": NaN}',
        b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"text": 1' + b"0" * 5000 + b"}",
        json.dumps({"text": TEXT, "model": "/etc/passwd"}).encode(),
        json.dumps({"text": TEXT, "model": ["builtin"]}).encode(),
        json.dumps({"text": [TEXT]}).encode(),
        json.dumps({"text": TEXT, "head": ["a", {}]}).encode(),
        json.dumps({"text": TEXT, "view": "x" * 100}).encode(),
        json.dumps({"text": TEXT, "view": "x", "number": "y"}).encode(),
        json.dumps({"text": TEXT, "removed": 5}).encode(),
        json.dumps({"text": TEXT * 20_000}).encode(),
        json.dumps({"model": "shapes", "text": TEXT, "image": "not base64!"}).encode(),
        json.dumps({"model": "shapes", "text": TEXT, "image": "aGVsbG8="}).encode(),
    ],
)
def test_what_is_no_request_is_told_in_a_sentence(here: Here, body: bytes) -> None:
    status, _, answer = here.ask("POST", "/run", body)
    assert status in (200, 400)
    assert b"Traceback" not in answer
    assert b"bug" not in answer


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("show", {"given": "{}", "model": "shapes"}),  # a text that names a file is a text
        ("show", {"given": TEXT, "image": "{}", "model": "shapes"}),
        ("generate", {"prompt": TEXT, "template": "{}"}),
        ("explain", {"text": TEXT, "among": "{}"}),
        ("explain", {"matrices": "{}"}),
        ("show", {"given": TEXT, "file": "{}"}),
        ("show", {"given": TEXT, "output": "{}"}),
        ("compare", {"texts": [TEXT], "against": "{}"}),
        ("tokens", {"text": TEXT, "model": "{}"}),
    ],
)
def test_no_file_is_named(here: Here, tmp_path: Path, command: str, content: object) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(Path("docs/images/shapes-1.png").read_bytes())
    before = secret.stat().st_atime_ns
    asked = json.loads(json.dumps(content).replace("{}", str(secret)))
    status, body = here.post(f"/v1/{command}", asked)
    assert status == 400 or (command == "show" and "image" not in asked)
    assert secret.stat().st_atime_ns == before
    assert [*tmp_path.iterdir()] == [secret]
    assert b"bug" not in body


def test_a_text_is_no_markup(here: Here) -> None:
    text = "</script><script>alert(1)</script>"
    first = here.parts("/run", {"text": text})[0]
    assert first["text"] == text  # as data, which scripts write as text
    _, headers, page = here.ask("GET", "/")
    assert b"alert(1)" not in page
    assert "script-src 'sha256-" in headers["content-security-policy"]
    assert "connect-src 'self'" in headers["content-security-policy"]


def test_slow_and_cut_connections_and_crowds_leave_it_as_it_was(here: Here) -> None:
    process = psutil.Process(here.process.pid)
    here.parts("/run", {"text": TEXT})
    before, opened = process.memory_info().rss, []
    head = f"POST /run HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
    for more in ("", "Content-Type: application/json\r\nContent-Length: 999\r\n\r\n{"):
        for _ in range(8):
            slow = socket.create_connection(("127.0.0.1", here.port))
            slow.sendall((head + more).encode())
            opened.append(slow)
    for _ in range(20):  # cut while it is answered
        cut = socket.create_connection(("127.0.0.1", here.port))
        body = json.dumps({"text": f"{TEXT} " * 30})
        told = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        cut.sendall((head + told + body).encode())
        cut.close()
    with ThreadPoolExecutor(50) as pool:
        crowd = [*pool.map(lambda _: _status(here), range(200))]
    assert {*crowd} <= {200, 503, None}
    for each in opened:
        each.close()
    while _status(here) != 200:
        pass
    assert process.memory_info().rss < before + (200 << 20)
    assert process.num_threads() < 40


def _status(here: Here) -> int | None:
    try:
        return here.post("/run", {"text": TEXT})[0]
    except OSError:
        return None


def test_the_token_of_the_address_becomes_a_cookie_of_this_page_alone(here: Here) -> None:
    asked = {"authorization": ""}
    status, headers, _ = here.ask("GET", f"/?token={TOKEN}&model=builtin", None, asked)
    assert (status, headers["location"]) == (303, "/?model=builtin")
    cookie = headers["set-cookie"].lower()
    assert "samesite=strict" in cookie
    assert "httponly" in cookie
    own = {**asked, "cookie": headers["set-cookie"].split(";")[0]}
    assert here.ask("GET", "/", None, own)[0] == 200
    assert here.ask("GET", "/", None, asked)[0] == 401
