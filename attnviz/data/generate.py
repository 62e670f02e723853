"""What a model wrote, and what each new token looked at, by segments of the prompt."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from attnviz.errors import IdleOption, UsageError, option


@dataclass(frozen=True)
class Sampling:
    """How each new token is chosen, and how many there are at most.

    `temperature` divides the logits; 0 takes the likeliest token. `top_p`: the likeliest tokens
    whose probabilities reach this sum together are drawn from. `seed`: of the random numbers.

    Raises:
        UsageError: a number out of range, or one that changes nothing.
    """

    most: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken: by request, or as no other is ever drawn.

        Logits divided by less than 1e-30 could exceed float32; the draw is certain long before.
        """
        return self.temperature < 1e-30

    def __post_init__(self) -> None:
        if not 0 < self.top_p <= 1:
            raise UsageError(
                f"{option('top_p', self.top_p)} is not a probability",
                "give more than 0, and at most 1",
            )
        idle = "top_p" if self.top_p < 1 else "seed" if self.seed else ""
        if idle and not self.temperature:
            raise IdleOption(
                f"{option(idle)} does nothing without {option('temperature')}",
                f"add {option('temperature', 1)}, or leave it out",
            )


GoOn: TypeAlias = Callable[[int], bool]
"""Is told of each new token, after its rows; says whether the model is to write another one."""
