"""A sound to the frames that a model attends to, and engines of models that read speech.

Transformers' own feature extractor makes the inputs, and the model is run on them as it is.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import InputError, ModelError, UsageError
from attnviz.models.attention import EnoughSeen
from attnviz.models.folder.config import ModelSizes
from attnviz.models.folder.files import IMAGES
from attnviz.models.folder.processors import read_extractor
from attnviz.models.huggingface.attention import forward, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.model import EncoderDecoder, HuggingFaceModel
from attnviz.models.loaded import ReadInput
from attnviz.records.heads import ALIGNMENT, Head, ModelCard, NamedHead, every_head
from attnviz.records.places import PADDING, HeardSound, RawSound, Waveform, time_label
from attnviz.records.speech import envelope_of, resampled
from attnviz.records.tokens import Ids, Token, numbered

MOST_HEARD = 30
"""The seconds of a sound that a model without a window of its own reads."""
MOST_WRITTEN = 224
"""The most tokens of a text that a model writes by itself: those of 30 s of speech."""
NO_TOKEN = -1
"""The id of a frame, which is not a token of a vocabulary."""
_extractor = lru_cache(2)(read_extractor)


@dataclass(frozen=True, eq=False)
class SpeechInputs:
    """The model's inputs for a sound: the arguments of its forward pass, by name."""

    features: Mapping[str, Tensor]

    def on(self, model: Any) -> dict[str, Any]:
        """The arguments, in the model's type and on its device."""
        return {k: v.to(model.device, model.dtype) for k, v in self.features.items()}


def hear(model: "SpeechModel", raw: RawSound) -> ReadInput:
    """As `LoadedModel.hear`."""
    assert model.tokenizer.folder is not None  # every engine of transformers has one
    extractor = _extractor(model.tokenizer.folder)
    rate = int(extractor.sampling_rate)
    window = float(_own(extractor, "chunk_length"))
    most = round((window or MOST_HEARD) * rate)
    enough = raw.samples[: ceil((most / rate + 0.1) * raw.rate)]
    samples = resampled(enough, raw.rate, rate)[:most]
    given = _features(model.model, extractor, samples)
    view = replace(model, heard=given)
    frames = _frames(view, given)
    read = round(window * rate) or len(samples)
    places = _places(model.model, extractor, frames, window, read)
    end = raw.begin + len(samples) / rate
    heard = HeardSound(
        name=raw.name,
        rate=raw.rate,
        heard_rate=rate,
        seconds=raw.seconds,
        begin=raw.begin,
        end=min(end, max(raw.seconds, raw.begin)) or end,
        frame=places.frame,
        window=window,
        changes=raw.changes,
        envelope=envelope_of(samples),
    )
    tokens = numbered(_tokens(heard, places, frames))
    return ReadInput(view, "", tokens, (), sound=heard)


def _own(extractor: Any, name: str) -> int:
    """A setting that this class of extractors has; 0 where its file has it in vain."""
    known = signature(type(extractor)).parameters
    return int(getattr(extractor, name, 0) or 0) if name in known else 0


def _features(model: Any, extractor: Any, samples: Waveform) -> SpeechInputs:
    """The features that the extractor makes of the samples, as one text of a batch."""
    name = model.main_input_name
    try:
        made = extractor(samples, sampling_rate=int(extractor.sampling_rate), return_tensors="pt")
        return SpeechInputs({name: made[name]})
    except Exception as error:  # any: it computes with the settings of the folder
        said = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(
            f"the feature extractor of {model.config.model_type} does not take this sound "
            f"({said[:120]})",
            f"give a longer one, or the {IMAGES} that belongs to the model",
        ) from None


def _frames(model: "SpeechModel", given: SpeechInputs) -> int:
    """The number of frames that the first layer reads."""
    found = 0

    def on_call(call: AttentionCall) -> None:
        nonlocal found
        found = call.q.size(1)
        raise EnoughSeen

    encoder = model.listener
    with torch.inference_mode(), recording(model.model, on_call), suppress(EnoughSeen):
        forward(encoder, **given.on(model.model))
    if not found:
        raise ModelError(f"{model.identity.architecture} calls no attention", "use another model")
    return found


# The seconds of a frame: as many samples apart as its convolutions and its features stride. The
# frames of convolutions that pad begin with the sound, as Whisper's authors count them; without
# padding, a frame stands for the middle of the samples that it reads.


@dataclass(frozen=True)
class FramePlaces:
    """Seconds from one frame to the next, and from the beginning of the sound to the first."""

    frame: float
    first: float


def _places(model: Any, extractor: Any, frames: int, window: float, samples: int) -> FramePlaces:
    rate, hop = int(extractor.sampling_rate), _own(extractor, "hop_length")
    spectral = model.main_input_name == "input_features"
    step = hop or (rate // 100 if spectral else 1)  # Kaldi's filter banks have 10 ms
    reads, before = (step if spectral else 1), 0
    for conv in _convolutions(model):
        kernel, stride, padding = conv.kernel_size[0], conv.stride[0], conv.padding
        reads += (kernel - 1) * step
        before += (padding[0] if isinstance(padding, tuple) else 0) * step
        step *= stride
    if abs(frames * step - samples) > reads + step:
        raise ModelError(
            f"{frames:,} frames of {step / rate:.4g} s are not the {samples / rate:.4g} s of this "
            f"sound: the {IMAGES} does not fit the model",
            "use the file that belongs to the model",
        )
    first = max(0.0, (reads - step) / 2 - before) / rate
    first = round(first, 3) if first > step / rate / 4 else 0.0
    return FramePlaces(window / frames if window else step / rate, first)


def _convolutions(model: Any) -> list[Any]:
    """The convolutions over time before the layers, in order."""
    listener = model.get_encoder() if model.config.is_encoder_decoder else model.base_model
    named = [(n, m) for n, m in listener.named_modules() if isinstance(m, nn.Conv1d)]
    # those of positions are grouped, and have no stride
    return [m for n, m in named if m.groups == 1 and not re.search(r"(^|\.)layers\.|adapter", n)]


def _tokens(heard: HeardSound, places: FramePlaces, frames: int) -> list[Token]:
    """A token for each frame; those behind the end of the sound are padding."""
    tokens = list[Token]()
    for number in range(frames):
        begin = heard.begin + places.first + number * places.frame
        silent = begin >= heard.end - 1e-6 and heard.window > 0
        name = PADDING if silent else time_label(begin, places.frame)
        time = round(begin, 6), round(begin + places.frame, 6)
        tokens.append(Token(0, NO_TOKEN, "", 0, 0, special=True, name=name, time=time))
    return tokens


# The engines.


def with_alignment(card: ModelCard, model: Any, sizes: ModelSizes) -> tuple[ModelCard, str]:
    """A card that names the heads which the model's settings have for words and time.

    Beside it, a note where none of those is a head of this model.
    """
    found = getattr(getattr(model, "generation_config", None), "alignment_heads", None)
    if sizes.kind != "cross" or sizes.reads != "speech" or not found:
        return card, ""
    known = every_head(sizes.heads_per_layer)
    pairs = found if isinstance(found, list | tuple) else ()
    pairs = [each for each in pairs if isinstance(each, list | tuple) and len(each) == 2]
    whole = [(layer, head) for layer, head in pairs if type(layer) is int and type(head) is int]
    heads = [Head(layer=layer, head=head) for layer, head in whole if (layer, head) in known]
    named = (NamedHead(ALIGNMENT, head, "aligns what is written with the sound") for head in heads)
    return replace(card, heads=(*card.heads, *named)), "" if heads else NONE_ALIGNS


NONE_ALIGNS = "the alignment_heads of its settings are not heads of this model, and are left out"


@dataclass(frozen=True, kw_only=True)
class SpeechModel(HuggingFaceModel):
    """A model that reads a sound; `heard`: the sound that it reads wherever it runs."""

    heard: SpeechInputs | None = None

    @property
    def listener(self) -> Any:
        """The module that the sound goes into."""
        return self.model.get_encoder() if self.kind != "self" else self.model.base_model

    def hear(self, raw: RawSound) -> ReadInput:
        return hear(self, raw)

    def inputs(self, ids: Ids, target: Ids = ()) -> dict[str, Any]:
        if self.heard is None:
            raise UsageError(f"{self.identity.name} reads only speech", "give it a sound file")
        return self.heard.on(self.model)


@dataclass(frozen=True, kw_only=True)
class SpeechWriter(SpeechModel, EncoderDecoder):
    """A model that reads a sound and writes a text."""

    def inputs(self, ids: Ids, target: Ids = ()) -> dict[str, Any]:
        begun = self._ids([self._start(), *target[:-1]])
        return {**super().inputs(ids), "decoder_input_ids": begun, "use_cache": False}

    def write(self, ids: Ids) -> tuple[str, tuple[Token, ...]]:
        self._check_output()
        begins = self._begins()
        most = min(MOST_WRITTEN, self.tokenizer.context - len(begins) - 2)
        plain = {"return_timestamps": False} if begins else {}
        with torch.inference_mode():
            written = forward(
                self.model,
                through=self.model.generate,
                **super().inputs(()),
                **plain,
                max_new_tokens=most,
                do_sample=False,
                num_beams=1,
            )
        special = self.tokenizer.special_ids
        own = [id_ for id_ in written[0].tolist() if id_ not in special]
        return self._spelled(begins, own, ended=len(own) < most)

    def read_target(self, text: str) -> tuple[Token, ...]:
        plain = self.tokenizer.encode(text, bos=False, special=False)
        own = [token.id for token in plain]
        begins = self._begins() if hasattr(self.model, "generate") else ()
        if len(begins) + len(own) + 1 >= self.tokenizer.context:
            return plain  # more than it writes, which a note says
        return self._spelled(begins, own, ended=True, inner=plain)[1]

    def _spelled(
        self, begins: Sequence[int], ids: Ids, *, ended: bool, inner: Sequence[Token] | None = None
    ) -> tuple[str, tuple[Token, ...]]:
        """A text and its tokens, between those that the model is given and the one that ends it."""
        text = ""
        if inner is None:
            text, inner = self.tokenizer.written(ids)
        if not inner:
            return "", ()
        end, after = inner[-1].end, self._end() if ended else None
        last = () if after is None else (self._named(after, end),)
        return text, numbered([*(self._named(id_, 0) for id_ in begins), *inner, *last])

    def _named(self, id_: int, place: int) -> Token:
        name = self.tokenizer.label(id_)
        return Token(0, id_, "", place, place, special=True, name=name)

    def _end(self) -> int | None:
        """The token that ends a text."""
        ends = getattr(self.model.config, "eos_token_id", None)
        first = ends[0] if isinstance(ends, list) and ends else ends
        return first if isinstance(first, int) else None

    def _begins(self) -> tuple[int, ...]:
        """Whisper's tokens after its first one: language, task, no times in the text."""
        retrieve = getattr(self.model, "_retrieve_init_tokens", None)
        if retrieve is None:
            return ()
        sound, settings = super().inputs(())["input_features"], copy(self.model.generation_config)
        settings.return_timestamps = False
        with torch.inference_mode():
            begun = forward(
                self.model,
                through=retrieve,
                input_features=sound,
                batch_size=1,
                generation_config=settings,
                config=self.model.config,
                num_segment_frames=sound.shape[-1],
                kwargs={},
            )
        return tuple(begun[0, 1:].tolist())
