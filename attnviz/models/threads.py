"""What a worker of a scan takes of its machine: one thread, and one device."""

import torch


def use_threads(threads: int) -> None:
    """Let every run of this process take so many threads, on which the last bits depend."""
    torch.set_num_threads(threads)


def use_device(worker: int) -> None:
    """Give each worker one of the graphics processors, in turn, where there are any."""
    if torch.cuda.is_available():
        torch.cuda.set_device(worker % torch.cuda.device_count())


def devices() -> int:
    """How many graphics processors there are."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
