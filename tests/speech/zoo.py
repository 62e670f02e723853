"""A tiny seeded model of each architecture that reads speech, in folders as published ones are."""

import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from transformers import PreTrainedTokenizerFast

from tests.conftest import bytes_tokenizer

RATE = 16_000
WINDOW = 2
"""Seconds of the tiny Whisper's window."""
SPECIAL = (
    "<|startoftranscript|> <|en|> <|de|> <|translate|> <|transcribe|> <|startofprev|> "
    "<|notimestamps|>"
).split()
END = "<|endoftext|>"
ENCODER: Mapping[str, Any] = {
    **{"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3},
    **{"num_attention_heads": 4, "num_conv_pos_embedding_groups": 4, "vocab_size": 320},
    **{"num_conv_pos_embeddings": 8, "conv_dim": (16,) * 7, "feat_extract_norm": "layer"},
}
PAIR: Mapping[str, Any] = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 48},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_ffn_dim": 48},
}
RAW: Mapping[str, Any] = {"do_normalize": False, "return_attention_mask": False}
"""Settings of features without a mean over the whole sound, which would move every frame."""


@dataclass(frozen=True)
class Spoken:
    """An architecture: its class, its features, and how far a sample reaches into its frames.

    `reach`: the samples before and behind its seconds that a frame reads, of windows and
    convolutions. `writes`: whether it writes a text.
    """

    name: str
    model: str
    features: Callable[[], Any]
    config: Mapping[str, Any] = field(default_factory=dict)
    reach: int = 0
    writes: bool = True

    def make(self, folder: Path, seed: int = 0, **more: Any) -> Path:
        """Write the folder of a model, as `save_pretrained` does, and return it."""
        tokenizer = spoken_tokenizer()
        begin, end = (tokenizer.convert_tokens_to_ids(name) for name in (SPECIAL[0], END))
        ends = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
        own = {**self.config, **ends, "vocab_size": len(tokenizer), **more}
        if self.writes:
            own["decoder_start_token_id"] = begin
        kind = getattr(transformers, self.model)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = kind(kind.config_class(**own)).eval()
            for name, each in model.named_parameters():
                if each.dim() > 1 and "conv" not in name and "embed_positions" not in name:
                    each.data.normal_(0, 0.25)
        if self.name == "whisper":
            _as_published(model.generation_config, tokenizer)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        self.features().save_pretrained(folder)
        return folder


def _as_published(settings: Any, tokenizer: PreTrainedTokenizerFast) -> None:
    """What the generation_config.json of a published Whisper says."""
    ids = tokenizer.get_vocab()
    settings._from_model_config = False
    settings.lang_to_id = {name: ids[name] for name in SPECIAL[1:3]}
    settings.task_to_id = {"translate": ids[SPECIAL[3]], "transcribe": ids[SPECIAL[4]]}
    settings.no_timestamps_token_id = ids[SPECIAL[-1]]
    settings.prev_sot_token_id = ids[SPECIAL[-2]]
    settings.is_multilingual = True
    settings.language, settings.task = "en", "transcribe"
    settings.alignment_heads = [[1, 1], [2, 0], [2, 3]]
    settings.suppress_tokens = [*(ids[name] for name in SPECIAL), ids[END]]
    settings.begin_suppress_tokens = [ids[END]]
    settings.max_length = 64


def spoken_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of bytes, with Whisper's special tokens."""
    backend: Tokenizer = bytes_tokenizer()
    backend.decoder = ByteLevel()
    backend.add_special_tokens([END, *SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=END, eos_token=END, pad_token=END, unk_token=END
    )


def _features(name: str, **settings: Any) -> Any:
    return getattr(transformers, name)(**settings)


ZOO = (
    Spoken(
        name="whisper",
        model="WhisperForConditionalGeneration",
        features=partial(
            _features, "WhisperFeatureExtractor", feature_size=16, chunk_length=WINDOW
        ),
        config={
            **PAIR,
            "num_mel_bins": 16,
            "max_source_positions": 50 * WINDOW,
            "max_target_positions": 64,
        },
        reach=520,  # half of a window of 400, and 2 of 160 by two convolutions
    ),
    Spoken(
        name="moonshine",
        model="MoonshineForConditionalGeneration",
        features=partial(_features, "Wav2Vec2FeatureExtractor", **RAW),
        config={
            **{"hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 64},
            **{"encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 3},
            **{"encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4},
        },
        reach=256,  # 895 samples around the middle of 384
    ),
    Spoken(
        name="speech_to_text",
        model="Speech2TextForConditionalGeneration",
        features=partial(
            _features,
            "Speech2TextFeatureExtractor",
            feature_size=16,
            num_mel_bins=16,
            do_ceptral_normalize=False,
        ),
        config={
            **PAIR,
            **{"input_feat_per_channel": 16, "conv_channels": 16, "max_target_positions": 64},
            "max_source_positions": 400,
        },
        reach=6 * 160 + 400,
    ),
    *(
        Spoken(
            name=name,
            model=model,
            features=partial(_features, "Wav2Vec2FeatureExtractor", **RAW),
            config=ENCODER,
            reach=80,
            writes=False,
        )
        for name, model in (
            ("wav2vec2", "Wav2Vec2ForCTC"),
            ("hubert", "HubertForCTC"),
            ("unispeech", "UniSpeechForCTC"),
            ("unispeech-sat", "UniSpeechSatForCTC"),
            ("data2vec-audio", "Data2VecAudioForCTC"),
        )
    ),
)


def named(name: str) -> Spoken:
    """One of the zoo."""
    return next(each for each in ZOO if each.name == name)


def syllables(seconds: float = 1.5, rate: int = RATE) -> NDArray[np.float32]:
    """A sound (n) like speech: syllables of three tones, three in a second, and faint noise."""
    t = np.arange(round(seconds * rate)) / rate
    whole = 1e-3 * np.random.default_rng(0).standard_normal(len(t))
    for n in range(max(1, round(seconds * 3))):
        loud = np.exp(-(((t - n / 3 - 1 / 6) / 0.06) ** 2))
        tones = (150 + 20 * n, 600 + 80 * n, 1_800 - 60 * n)
        whole += 0.1 * loud * sum(np.sin(2 * np.pi * tone * t) for tone in tones)
    return whole.astype(np.float32)


def as_wav(path: Path, samples: NDArray[np.float32], rate: int = RATE) -> Path:
    """A WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32_767).astype("<i2").tobytes())
    return path
