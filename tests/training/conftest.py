"""What the tests of the training share: the tokenizer, and workers that start at once."""

import multiprocessing

import pytest
from tokenizers import Tokenizer

from attnviz.training import loop
from attnviz.training import tokenizer as tokenizers


@pytest.fixture(scope="session")
def world_tokenizer() -> Tokenizer:
    """The tokenizer of the little world, which takes seconds to build."""
    tokenizer = tokenizers.build()
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked from a process that has imported torch, instead of importing it each."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo", "attnviz.training.loop"])
    monkeypatch.setattr(loop, "get_context", lambda _: context)
