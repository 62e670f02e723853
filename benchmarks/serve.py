"""The live page on a trained model: from a key stroke to the picture, beside plain transformers.

    pip install -e ".[serve,bench]"
    python -m benchmarks.serve FOLDER

FOLDER: a model of `save_pretrained`. *Picture*: from a letter that is typed in Chromium to the new
heatmap, for a text of 20 tokens, beside the bare forward pass of the same tokens in transformers,
in turn. *Miniatures*: of 512 tokens, from the end of the run to all miniatures drawn. Nothing else
may run meanwhile.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from tests.browsing import until

TURNS = 9
SHORT = "The quick brown fox jumps over the lazy dog while the old man found a red apple i"
LONG = "the old man found a red apple in the forest near the river and " * 36
SENT = """performance.getEntriesByType("resource")
  .findLast(({ name }) => name.endsWith("/run")).transferSize"""
TOKEN = "aTokenOfTheBenchmark"
WATCH = """(text) => new Promise((done) => {
  const start = performance.now(), box = byId("text"), body = document.body;
  const seen = new MutationObserver(() => {
    if (body.dataset.ready !== text) return;
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  });
  seen.observe(body, { attributes: true });
  box.value = text;
  box.dispatchEvent(new Event("input"));
})"""
"""From the text to the frame after its picture."""


def main(folder: Annotated[Path, typer.Argument(help="A model's folder.")]) -> None:
    """Measure the live page of a model."""
    command = [sys.executable, "-m", "attnviz", "serve", "-m", str(folder), "--token", TOKEN]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    try:
        print(json.dumps(_measured(folder, address), indent=2))
    finally:
        server.terminate()
        server.wait()


def _measured(folder: Path, address: str) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    bare, ids = _forward(folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        until(page, "document.body.dataset.ready")
        page.evaluate(WATCH, SHORT)
        page.wait_for_timeout(3000)
        pictures, passes = [], []
        for turn in range(TURNS):
            pictures.append(
                page.evaluate(WATCH, SHORT + "n" * (turn % 2) + " at" * (turn // 2 % 2))
            )
            page.wait_for_timeout(3000)  # the rest of the run
            passes.append(bare())
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        whole = page.evaluate(WATCH, LONG) / 1000
        until(page, "byId('grid').sheet")
        size = page.evaluate("run.queries.length")
        sent = page.evaluate(SENT)
        browser.close()
    return {
        "tokens": len(ids),
        "picture, ms": round(median(pictures)),
        "bare forward pass, ms": round(median(passes)),
        "first paint, ms": round(paint),
        "tokens of the long text": size,
        "its picture, s": round(whole, 2),
        "its bare forward pass, s": round(bare(LONG) / 1000, 2),
        "sent for it, MB": round(sent / 1e6, 2),
    }


def _forward(folder: Path) -> tuple[Any, list[int]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()

    def forward(text: str = SHORT) -> float:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        began = time.perf_counter()
        with torch.inference_mode():
            model(ids, use_cache=False)
        return 1000 * (time.perf_counter() - began)

    forward()
    return forward, tokenizer(SHORT)["input_ids"]


if __name__ == "__main__":
    typer.run(main)
