"""The model's sizes, its words, and its processor.

It is a LLaVA as transformers builds it: CLIP's encoder of images, a projector and a Llama.
"""

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from making.shapes.draw import COLOURS, NUMBERS, OUTLINES

SIDE, PATCH = 8, 8  # patches of a row, pixels of a patch
PATCHES, PIXELS = SIDE * SIDE, SIDE * PATCH
WIDTH, HEADS, INNER, LAYERS, VISION_LAYERS, CONTEXT = 96, 4, 192, 4, 2, 512
PAD, BOS, EOS, UNKNOWN, IMAGE = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<image>")
WORDS = """what colour color is the shape how many shapes are there to left right of above below
describe it picture image a an and nothing , . ?""".split()
IDS = {word: n for n, word in enumerate((*SPECIAL, *WORDS, *COLOURS, *OUTLINES, *NUMBERS))}
TEMPLATE = """\
{{ bos_token }}{% for message in messages %}{% if message.content is string %}{{ message.content }}\
{% else %}{% for part in message.content %}\
{{ '<image> ' if part.type == 'image' else part.text }}\
{% endfor %}{% endif %}{{ '</s> ' if message.role == 'assistant' else ' ' }}{% endfor %}"""


def processor() -> LlavaProcessor:
    """What turns pictures and a text, in words and signs of lower case, into the model's input."""
    backend = Tokenizer(models.WordLevel(IDS, unk_token=UNKNOWN))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    backend.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, IDS[BOS])]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **{"pad_token": PAD, "bos_token": BOS, "eos_token": EOS, "unk_token": UNKNOWN},
        extra_special_tokens={"image_token": IMAGE},
        model_max_length=CONTEXT,
        padding_side="left",
    )
    images = CLIPImageProcessorPil(
        size={"shortest_edge": PIXELS},
        crop_size={"height": PIXELS, "width": PIXELS},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    return LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,  # CLS, which the language model is not given
        chat_template=TEMPLATE,
    )


def fresh_model(seed: int) -> LlavaForConditionalGeneration:
    """A model with random weights; positions begin as waves along rows and columns."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": HEADS}
    vision = CLIPVisionConfig(
        **sizes, num_hidden_layers=VISION_LAYERS, image_size=PIXELS, patch_size=PATCH
    )
    language = LlamaConfig(
        **sizes,
        vocab_size=len(IDS),
        num_hidden_layers=LAYERS,
        max_position_embeddings=CONTEXT,
        **{"pad_token_id": IDS[PAD], "bos_token_id": IDS[BOS], "eos_token_id": IDS[EOS]},
        tie_word_embeddings=True,
        initializer_range=0.08,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=language,
        image_token_index=IDS[IMAGE],
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        image_seq_length=PATCHES,
        tie_word_embeddings=True,
    )
    config._attn_implementation = "eager"
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():
        model.model.vision_tower.embeddings.position_embedding.weight[1:] = waves(SIDE, WIDTH)
    return model


def waves(side: int, width: int) -> Tensor:
    """(patches, d): the sines and cosines of a patch's row, then those of its column."""
    places, rates = torch.arange(side) / side, torch.arange(1, width // 4 + 1) / 2
    angles = torch.pi * places[:, None] * rates
    each = 0.3 * torch.cat([angles.sin(), angles.cos()], dim=1)  # (side, d / 2)
    rows, columns = each.repeat_interleave(side, 0), each.repeat(side, 1)
    return torch.cat([rows, columns], dim=1)
