"""The seconds of a frame are those of the sound that it reads: a part of the sound is changed.

Before any attention, the frames that react are those whose seconds attnviz says, wider by what
windows and convolutions reach, and no others.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from attnviz.kit.prepare import load_model
from attnviz.models.catalog import Source
from attnviz.records.places import RawSound, Span
from tests.speech.zoo import RATE, ZOO, Spoken, syllables

BLOCKS = ((0.30, 0.36), (0.70, 0.90), (1.21, 1.25), (1.42, 1.50))
"""Seconds that are made another noise; none of them has the loudest sample."""


class Heard:
    """A model, and what its first layer, or what stands before, is given of a sound."""

    def __init__(self, spoken: Spoken, folder: Path) -> None:
        kind = "encoder" if spoken.writes else None
        self.frame = 0.0
        self.engine: Any = load_model(Source(str(folder), quiet=True, kind=kind))
        listener = self.engine.listener
        if hasattr(listener, "groupnorm"):  # Moonshine's is over all seconds
            listener.groupnorm = nn.Identity()
        self.before = getattr(listener, "feature_projection", None)
        self.module = self.before or listener.layers[0]

    def frames(self, samples: NDArray[np.float32]) -> tuple[torch.Tensor, list[Span]]:
        """Vectors (frames, d), and the seconds of each."""
        heard = self.engine.hear(RawSound("a.wav", samples, RATE, len(samples) / RATE))
        kept: list[torch.Tensor] = []

        def keep(_module: nn.Module, args: Any, output: Any) -> None:
            own = output if self.before is not None else args
            kept.append(own[0] if isinstance(own, tuple) else own)

        hook = self.module.register_forward_hook(keep)
        with torch.inference_mode():
            self.engine.model.base_model(**heard.model.inputs((), (1, 1)))
        hook.remove()
        (vectors,) = kept
        assert heard.sound is not None
        self.frame = heard.sound.frame
        return vectors.reshape(-1, vectors.shape[-1]), [token.time for token in heard.tokens]


def far_off(
    spoken: Spoken, heard: Heard, *, shift: float = 0.0, blocks: Sequence[Span] = BLOCKS
) -> list[str]:
    """Where frames react that should not, or do not that should; `shift` of the seconds."""
    whole, wrong = syllables(), list[str]()
    plain, spans = heard.frames(whole)
    noise = np.random.default_rng(1).standard_normal(len(whole)).astype(np.float32)
    for begin, end in blocks:
        other, part = whole.copy(), slice(round(begin * RATE), round(end * RATE))
        other[part] = 0.02 * noise[part]
        changed, _ = heard.frames(other)
        apart = (changed - plain).abs().amax(dim=1)
        reacting = (apart > 1e-5).tolist()
        reach = spoken.reach / RATE + 2e-3
        for reacts, span in zip(reacting, spans, strict=True):
            first, last = span[0] + shift, span[1] + shift
            if reacts and (last < begin - reach or first > end + reach):
                wrong.append(f"{span} reacts to {begin}-{end}")
            if not reacts and first >= begin and last <= end:
                wrong.append(f"{span} does not react to {begin}-{end}")
    return wrong


@pytest.mark.parametrize("spoken", ZOO, ids=lambda spoken: spoken.name)
def test_frames_react_to_their_seconds_and_to_no_others(spoken: Spoken, tmp_path: Path) -> None:
    heard = Heard(spoken, spoken.make(tmp_path))
    assert far_off(spoken, heard) == []
    beyond = 2 * spoken.reach / RATE + 0.06
    assert far_off(spoken, heard, shift=beyond)
    assert far_off(spoken, heard, shift=-beyond)
