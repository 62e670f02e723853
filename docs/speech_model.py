"""Make the model and the sound of docs/speech.md: a tiny random Whisper, and three tones.

    python docs/speech_model.py FOLDER

It has learned nothing; it is there for the form of what is shown. Its files are those of a
published Whisper: config.json, generation_config.json with alignment heads, a tokenizer, the
settings of its features, and weights.
"""

import sys
import wave
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import (
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)
from transformers.utils import logging

WORDS = "the cat sat on the mat"
SPECIAL = "<|startoftranscript|> <|en|> <|transcribe|> <|notimestamps|> <|endoftext|>".split()
SIZES = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 3},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4},
    **{"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_mel_bins": 40},
    **{"max_source_positions": 1500, "max_target_positions": 64, "init_std": 0.3},
}


def tokenizer() -> PreTrainedTokenizerFast:
    """The words of one sentence, and Whisper's special tokens."""
    own = Tokenizer(BPE())
    own.pre_tokenizer, own.decoder = ByteLevel(add_prefix_space=False), Decoder()
    own.train_from_iterator([WORDS] * 3, BpeTrainer(vocab_size=80, show_progress=False))
    own.add_special_tokens(SPECIAL)
    end = SPECIAL[-1]
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token=end, pad_token=end)


def main(folder: Path) -> None:
    """Write the folder of the model, and speech.wav beside it."""
    logging.disable_progress_bar()
    words = tokenizer()
    begin, english, task, plain, end = words.convert_tokens_to_ids(SPECIAL)
    torch.manual_seed(0)
    ids = {"decoder_start_token_id": begin, "eos_token_id": end, "pad_token_id": end}
    config = WhisperConfig(**SIZES, **ids, bos_token_id=end, vocab_size=len(words))
    model = WhisperForConditionalGeneration(config).eval()
    settings = model.generation_config
    settings._from_model_config = False
    settings.language, settings.task, settings.is_multilingual = "en", "transcribe", True
    settings.lang_to_id, settings.task_to_id = {SPECIAL[1]: english}, {"transcribe": task}
    settings.no_timestamps_token_id, settings.alignment_heads = plain, [[1, 1], [2, 0], [2, 3]]
    for part in (model, words, WhisperFeatureExtractor(feature_size=40)):
        part.save_pretrained(folder)
    t = np.arange(2 * 22_050) / 22_050
    loud = sum(np.exp(-(((t - at) / 0.12) ** 2)) for at in (0.4, 1.0, 1.6))
    sound = 0.3 * loud * np.sin(2 * np.pi * (180 + 60 * t) * t)
    with wave.open(str(folder.with_name("speech.wav")), "wb") as file:
        file.setparams((1, 2, 22_050, 0, "NONE", ""))
        file.writeframes((32_767 * sound).astype("<i2").tobytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
