"""What the server answers is what the functions and the commands give, and it ends at once."""

import base64
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import attnviz
from attnviz.commands.serve.answers import answers_of
from tests.commands.serve.conftest import Here, started

TEXT = "a fluffy blue creature roamed the verdant forest"
CALLS = {
    "show": {"given": TEXT, "heads": "L3H2"},
    "heads": {"text": TEXT, "layers": "1"},
    "predict": {"text": TEXT, "top": 3},
    "why": {"text": TEXT, "head": "L3H2", "query": "creature"},
    "explain": {"text": "a b"},
    "ablate": {"text": TEXT, "heads": ["L4H0"]},
    "patch": {"text": "a red cat", "source": "a blue cat", "heads": "L1H0"},
    "compare": {"texts": ["a cat", "a dog"]},
    "tokens": {"text": TEXT},
    "generate": {"prompt": "the creature was", "max_new_tokens": 3},
}


def test_a_run_has_the_patterns_and_the_next_token_of_the_functions(here: Here) -> None:
    (first,), (reads, layer) = (
        here.parts(path, {"text": TEXT, "head": [3, 2]}) for path in ("/run", "/rest")
    )
    capture, steps = attnviz.capture(TEXT), attnviz.explain(TEXT, head="L3H2").arrays
    assert [token["label"] for token in first["queries"]] == [
        token.label for token in capture.tokens
    ]
    for layer_number, head in [(3, 2), (0, 1), (4, 3)]:
        sent = first["arrays"][f"pattern.{layer_number}.{head}"].reshape(9, 9)
        np.testing.assert_allclose(sent, capture.pattern(layer_number, head), atol=1e-6)
    likeliest = attnviz.predict(TEXT, top=1).rows[0]
    logits = first["arrays"]["logits"].astype(np.float64)
    assert first["written"][str(logits.argmax())]["label"] == likeliest["token"]
    assert np.exp(logits.max()) / np.exp(logits).sum() == pytest.approx(
        likeliest["probability"], abs=1e-4
    )
    for name in ("q", "k", "scores"):
        assert layer["arrays"][name].reshape(steps[name].shape) == pytest.approx(
            np.where(np.isfinite(steps[name]), steps[name], -np.inf), abs=1e-4
        )
    assert (
        reads["choice"]["headline"]
        == " ".join(str(attnviz.show(TEXT)).split()).split(" (chosen")[0]
    )


def test_heads_off_is_a_run_without_them(here: Here) -> None:
    (part,) = here.parts("/without", {"text": TEXT, "removed": [[4, 0], [3, 2]]})
    off = attnviz.ablate(TEXT, heads=["L4H0", "L3H2"], together=True).record
    token = off.after.candidates[0]
    logits = part["arrays"]["logits"].astype(np.float64)
    assert logits.argmax() == token.id
    assert np.exp(logits.max()) / np.exp(logits).sum() == pytest.approx(token.probability, abs=1e-4)


@pytest.mark.parametrize("name", CALLS)
def test_a_command_is_answered_with_its_json(here: Here, name: str) -> None:
    status, body = here.post(f"/v1/{name}", CALLS[name])
    assert status == 200, body
    content = dict(CALLS[name])
    result = getattr(attnviz, name)(*content.pop("texts", ()), **content)
    answered, own = json.loads(body), json.loads("".join(result.pieces("json")))
    for each in (answered, own):
        each.pop("made", None)
    assert answered == own


def test_a_request_says_in_which_form_it_takes_a_result(here: Here) -> None:
    asked = {"given": TEXT, "heads": "L3H2"}
    assert here.post("/v1/show", asked, accept="image/png")[1][:8] == b"\x89PNG\r\n\x1a\n"
    assert b"<svg" in here.post("/v1/show", asked, accept="image/svg+xml")[1][:400]
    assert here.post("/v1/show", asked, accept="application/x-npz")[1][:2] == b"PK"
    assert here.post("/v1/show", asked, accept="text/plain")[1].startswith(b"L3H2")
    assert here.post("/v1/show", asked, accept="text/csv")[1].startswith(b"line,layer,head,")


def test_an_answer_is_streamed_token_by_token(here: Here) -> None:
    asked = {"prompt": "the creature was", "max_new_tokens": 4}
    status, body = here.post("/v1/generate", asked, accept="text/event-stream")
    events = [event.split("\ndata: ", 1) for event in body.decode().strip().split("\n\n")]
    tokens = [json.loads(data)["text"] for kind, data in events if kind == "event: token"]
    assert status == 200
    assert len(tokens) > 1
    assert "".join(tokens) == attnviz.generate("the creature was", max_new_tokens=4).text
    kind, data = events[-1]
    assert kind == "event: result"
    assert "rows" in json.loads(data.replace("\ndata: ", "\n"))


def test_it_describes_what_it_offers(here: Here) -> None:
    status, _, body = here.ask("GET", "/v1")
    told = json.loads(body)
    assert status == 200
    assert told["models"] == ["builtin", "translator", "shapes"]
    assert {*CALLS} <= {each["name"] for each in told["commands"]} == {*told["arguments"]}
    assert told["arguments"]["predict"]["properties"]["top"]["type"] == "integer"


def test_an_image_is_given_as_its_content(here: Here) -> None:
    image = base64.b64encode(Path("docs/images/shapes-1.png").read_bytes()).decode()
    asked = {"model": "shapes", "text": "what is left of the circle?", "image": image}
    first, *_ = here.parts("/run", asked)
    assert len(first["boxes"]) == 64
    assert first["queries"][-2]["label"] == "circle"


def test_a_wrong_call_is_answered_with_the_sentence_of_the_terminal(here: Here) -> None:
    status, body = here.post("/v1/show", {"given": TEXT, "heads": "L9H9"})
    assert status == 400
    assert "L9H9" in json.loads(body)["error"]
    (part,) = here.parts("/run", {"text": "word " * 400})
    assert "256" in part["wrong"]


def test_the_newest_request_of_a_view_makes_earlier_ones_give_way(here: Here) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(number: int) -> list[str]:
        time.sleep(number / 100)
        content = {"text": f"{TEXT} " * 20 + str(number), "view": "mine", "number": number}
        return [each["part"] for each in here.parts("/run", content)]

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(ask, range(8))]
    assert "patterns" in answers[-1]
    assert sum("patterns" in each for each in answers) < 8


def test_an_interrupt_ends_it_within_a_second_in_the_middle_of_runs() -> None:
    server = started()
    asked = {"text": f"{TEXT} " * 25}  # a run for each head
    Thread(target=_ignored, args=[server, asked], daemon=True).start()
    time.sleep(1.0)
    began = time.monotonic()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(10) == 0
    assert time.monotonic() - began < 1.5
    assert server.process.stdout is not None
    server.process.stdout.close()


def _ignored(server: Here, asked: object) -> None:
    with suppress(OSError):
        server.post("/v1/ablate", asked)


def test_its_address_is_of_this_computer_unless_a_token_is_given() -> None:
    line = [sys.executable, "-m", "attnviz", "serve", "--host", "0.0.0.0"]
    ended = subprocess.run(line, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("attnviz: --host 0.0.0.0 may let others on the network in")
    assert not ended.stdout


def test_runs_of_all_models_wait_for_each_other() -> None:
    model = attnviz.load_model("builtin")
    served = answers_of({"one": model, "other": model}, ["compare"]).served
    assert served["one"].one is served["other"].one  # `against` runs the other one


@pytest.mark.parametrize("removed", [[[9, 0]], [[0, 9]], [[-1, 0]]])
def test_a_head_that_is_not_there_cannot_be_removed(here: Here, removed: object) -> None:
    (part,) = here.parts("/without", {"text": TEXT, "removed": removed})
    assert part["wrong"].startswith("there is no head L")
