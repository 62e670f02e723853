"""How many threads a run takes, on which the last bits of its numbers depend."""

import torch


def use_threads(threads: int) -> None:
    """Let every run of this process take so many threads."""
    torch.set_num_threads(threads)
