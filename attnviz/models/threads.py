"""What a worker of a scan takes of its machine: one thread, and one device."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from attnviz.models.loaded import LoadedModel


def use_threads(threads: int) -> None:
    """Let every run of this process take so many threads, on which the last bits depend."""
    torch.set_num_threads(threads)


@contextmanager
def same_threads_after() -> Iterator[None]:
    """Give this process back the number of threads that it has now."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def use_device(worker: int) -> None:
    """Give each worker one of the graphics processors, in turn, where there are any."""
    if torch.cuda.is_available():
        torch.cuda.set_device(worker % torch.cuda.device_count())


def device_name(model: LoadedModel) -> str:
    """What kind of device a loaded model is on: `cpu`, or a graphics processor by its name."""
    held = getattr(model, "model", None)  # a torch module, but for embeddings
    first = next(held.parameters(), None) if isinstance(held, nn.Module) else None
    if first is None or first.device.type != "cuda":
        return "cpu" if first is None else first.device.type
    return torch.cuda.get_device_name(first.device)


def devices() -> int:
    """How many graphics processors there are."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
