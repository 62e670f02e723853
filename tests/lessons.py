"""Runs of a lesson page in a browser, and the same in Python."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.draw.labels import distinct_labels
from attnviz.errors import InputError
from attnviz.kit.prepare import Prepared, TextOptions, prepare
from attnviz.records.capture import FloatArray
from attnviz.records.heads import every_head
from attnviz.records.predict import LogitRows, log_softmax

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

    from attnviz.models.loaded import LoadedModel

OPEN = """globalThis.tested ??= await openEngine(
  JSON.parse(document.getElementById("data").textContent));"""
READ = (
    f"async ([texts, removed, names]) => {{ {OPEN}"
    + """
  const written = (array) => {
    const bytes = new Uint8Array(array.buffer), parts = [];
    for (let at = 0; at < bytes.length; at += 8192) {
      parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
    }
    return btoa(parts.join(""));
  };
  const answers = [];
  for (const text of texts) {
    try {
      const run = await tested.run(text, { removed });
      const side = (tokens) => tokens.map(({ id, label, start, end }) => [id, label, start, end]);
      answers.push({
        target: run.target,
        queries: side(run.queries),
        keys: side(run.keys),
        probabilities: run.next && written(run.next.probabilities),
        layers: run.layers.map((layer) =>
          Object.fromEntries(names.map((name) => [name, written(layer[name])]))),
      });
    } catch (error) {
      answers.push({ wrong: error.message });
    }
  }
  return answers;
}"""
)


def runs_in_page(
    page: "Page | Frame",
    texts: Sequence[str],
    removed: Sequence[tuple[int, int]] = (),
    names: Sequence[str] = ("pattern",),
) -> list[dict[str, Any]]:
    """The page's run of each text: tokens, arrays of layers, probabilities; or what is wrong."""
    answers: list[dict[str, Any]] = page.evaluate(
        READ, [list(texts), [list(head) for head in removed], list(names)]
    )
    for answer in answers:
        if "wrong" not in answer:
            if answer["probabilities"] is not None:
                answer["probabilities"] = _numbers(answer["probabilities"])
            answer["layers"] = [
                {name: _numbers(array) for name, array in layer.items()}
                for layer in answer["layers"]
            ]
    return answers


def _numbers(written: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(written), "<f4")


@dataclass(frozen=True)
class Differences:
    """The largest differences between a page and Python over some texts."""

    weight: float = 0.0
    probability: float = 0.0
    refused: int = 0


def compared(model: "LoadedModel", page: "Page", texts: Sequence[str]) -> Differences:
    """See that the page makes the tokens that Python makes, and refuses what Python refuses."""
    weight, probability, refused = [0.0], [0.0], 0
    for text, run in zip(texts, runs_in_page(page, texts), strict=True):
        try:
            prepared = prepare(model, text, TextOptions())
        except InputError:
            refused += 1
            assert "wrong" in run, repr(text)
            continue
        assert "wrong" not in run, (text, run)
        _check_tokens(prepared, text, run)
        heads = every_head(model.identity.heads_per_layer)
        for layer, theirs in zip(prepared.record(heads).layers, run["layers"], strict=True):
            weight.append(float(np.abs(layer.weights.ravel() - theirs["pattern"]).max()))
        if model.can("predict"):
            after = _after(model, prepared.ids)
            probability.append(float(np.abs(after - run["probabilities"]).max()))
    # NaN, which numpy's maximum is where one is met, is no small difference
    return Differences(float(np.max(weight)), float(np.max(probability)), refused)


def _check_tokens(prepared: Prepared, text: str, run: dict[str, Any]) -> None:
    """See that ids, labels and places are those of Python."""
    empty, written = prepared.empty, prepared.empty.target
    sides = {
        "queries": (empty.query_tokens, written or text),
        "keys": (empty.key_tokens, written if empty.kind == "decoder" else text),
    }
    for side, (tokens, whole) in sides.items():
        labels = distinct_labels(tokens)
        ours = [
            [token.id, label, _units(whole, token.start), _units(whole, token.end)]
            for token, label in zip(tokens, labels, strict=True)
        ]
        assert run[side] == ours, repr(text)


def _units(text: str, at: int) -> int:
    """The units of UTF-16 before a character."""
    return len(text[:at].encode("utf-16-le")) // 2


def _after(model: "LoadedModel", ids: Sequence[int]) -> FloatArray:
    """The probabilities (V) of the token after these."""
    found: list[LogitRows] = []
    model.predict(ids, [len(ids) - 1], found.append, lens=False)
    return np.exp(log_softmax(found[0].logits))[0].astype(np.float32)
