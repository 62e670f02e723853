"""Shards in processes of this machine.

Each worker loads the model once, and takes one shard after the other. It has one thread, so that
the number of workers changes no bit, and ends when its parent does.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from attnviz.data.head import choose_heads
from attnviz.data.scan import Record, Shard
from attnviz.errors import AttnvizError, ModelError
from attnviz.inputs.corpus import documents_of
from attnviz.runs.prepare import load_model
from attnviz.scan.count import Counter
from attnviz.scan.plan import Plan


def run_local(plan: Plan, workers: int, told: Callable[[Record], object]) -> None:
    """Count every shard that is left.

    Args:
        plan: the scan.
        workers: how many processes.
        told: is given the record of each shard as it is finished.

    Raises:
        AttnvizError: what a worker raised; finished shards stay.
    """
    left = plan.left()
    context = multiprocessing.get_context("spawn")
    pool = [_started(context, plan) for _ in range(min(workers, len(left)))]
    try:
        _feed(plan, left, dict(pool), told)
    finally:
        for _, process in pool:
            process.terminate()
        for _, process in pool:
            process.join()


def _started(
    context: multiprocessing.context.SpawnContext, plan: Plan
) -> tuple[Connection, BaseProcess]:
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, plan), daemon=True)
    process.start()
    there.close()
    return here, process


def _feed(
    plan: Plan,
    left: list[Shard],
    pool: dict[Connection, BaseProcess],
    told: Callable[[Record], object],
) -> None:
    """Give each worker that is ready its next shard, until none is left."""
    waiting, busy = list(reversed(left)), set(pool)
    while busy:
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            try:
                said = ready.recv()
            except EOFError:
                raise ModelError(
                    "a worker ended before its shard was finished",
                    "perhaps memory is short: give fewer workers, and scan again to go on",
                ) from None
            if isinstance(said, AttnvizError):
                raise said
            if isinstance(said, tuple):
                number, record = said
                plan.keep(number, record)
                told(record)
            if waiting:
                ready.send(waiting.pop())
            else:
                busy.discard(ready)


def _work(parent: Connection, plan: Plan) -> None:
    """A worker: it is ready, and then answers each shard with its number and its record."""
    from attnviz.models.threads import use_threads

    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    use_threads(1)
    try:
        model = load_model(plan.source)
        chosen = plan.request.heads
        heads = choose_heads(model.identity.heads_per_layer, chosen.layers, chosen.heads)
        length = min(plan.request.length, model.tokenizer.context)
        parent.send(None)
        while True:
            shard: Shard = parent.recv()
            counter = Counter(model, heads, length)
            for piece in shard.pieces:
                for document in documents_of(piece, plan.request.split, plan.request.key):
                    counter.add(document)
            parent.send((shard.number, counter.record))
    except AttnvizError as error:
        parent.send(error)
    except (EOFError, BrokenPipeError):  # the parent has gone
        return


def _end_with_parent() -> None:
    """Let the system end this process when its parent is gone, killed or not (Linux)."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
