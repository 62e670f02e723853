"""A tiny seeded model of each vision-language architecture, in folders as published ones are.

Patches, merges, tiles and pooling have the proportions of the published models; everything else
is small.
"""

from tests.vision.folders import Settings, Sighted, older, processed, processor

__all__ = ["ZOO", "Sighted", "older", "processed", "processor", "species"]

LAYERS: Settings = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
HEADS: Settings = {"num_attention_heads": 4, "num_key_value_heads": 2}
ENDS: Settings = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
TEXT: Settings = {**LAYERS, **HEADS, **ENDS, "vocab_size": 320}
"""Those of a language model; tokenizers here have fewer tokens, but for that of PaliGemma."""
VISION: Settings = {**LAYERS, "num_attention_heads": 4}
CLIP: Settings = {**VISION, "model_type": "clip_vision_model", "image_size": 112, "patch_size": 14}
SIGLIP: Settings = {**VISION, "image_size": 112, "patch_size": 14, "vision_use_head": False}
"""8 × 8 patches in each image, or in each of its tiles."""
SQUARE: Settings = {"size": {"height": 112, "width": 112}}
CROPPED: Settings = {"size": {"shortest_edge": 112}, "crop_size": {"height": 112, "width": 112}}
IMAGE = {"image_token": "<image>"}
WITHOUT_CLASS: Settings = {
    "patch_size": 14,
    "vision_feature_select_strategy": "default",
    "num_additional_image_tokens": 1,
}
NEXT_TILES = [[112, 224], [224, 112], [224, 224], [336, 112], [112, 336]]
ONEVISION_TILES = [[112 * rows, 112 * columns] for rows in range(1, 7) for columns in range(1, 7)]
QWEN_TOKENS = {
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
}
QWEN_IDS = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}
QWEN_PLACE = "<|vision_start|><|image_pad|><|vision_end|>"
QWEN_TEXT = {
    **TEXT,
    "head_dim": 8,
    "rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1]},
}
QWEN_VISION = {"depth": 2, "hidden_size": 32, "num_heads": 4}
QWEN_IMAGES = {"size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 64}}
QWEN3_VISION = {
    **QWEN_VISION,
    "intermediate_size": 48,
    "out_hidden_size": 32,
    "num_position_embeddings": 64,
}
QWEN3_IMAGES = {"size": {"shortest_edge": 64 * 64, "longest_edge": 32 * 32 * 64}, "patch_size": 16}
IDEFICS_TOKENS = {
    **IMAGE,
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
    **{f"row_{r}_col_{c}": f"<row_{r}_col_{c}>" for r in range(1, 7) for c in range(1, 7)},
}
PIXTRAL_TOKENS = {
    "image_token": "[IMG]",
    "image_break_token": "[IMG_BREAK]",
    "image_end_token": "[IMG_END]",
}
PIXTRAL: Settings = {**VISION, "model_type": "pixtral", "image_size": 160, "head_dim": 8}
OVIS_INDICATORS = {
    f"image_{name.lower()}_token": f"<IMG_{name}>" for name in "START GRID COL ROW END".split()
}

ZOO = (
    Sighted(
        name="llava",
        classes=("LlavaProcessor", "CLIPImageProcessor"),
        place="<image>",
        tokens=IMAGE,
        config={
            "image_token_index": "<image>",
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": CLIP,
        },
        images=CROPPED,
        processor=WITHOUT_CLASS,
    ),
    Sighted(  # an image of any size, with a token after each row
        name="llava+pixtral",
        classes=("PixtralProcessor", "PixtralImageProcessor"),
        place="[IMG]",
        tokens=PIXTRAL_TOKENS,
        config={
            "image_token_index": "[IMG]",
            "vision_feature_layer": -1,
            "vision_feature_select_strategy": "full",
            "text_config": {**TEXT, "model_type": "mistral"},
            "vision_config": {**PIXTRAL, "patch_size": 16},
        },
        images={"size": {"longest_edge": 128}, "patch_size": {"height": 16, "width": 16}},
        processor={"patch_size": 16},
    ),
    Sighted(  # an overview, then tiles without their padding, with a learned newline in each row
        name="llava_next",
        classes=("LlavaNextProcessor", "LlavaNextImageProcessor"),
        place="<image>",
        tokens=IMAGE,
        config={
            "image_token_index": "<image>",
            "image_grid_pinpoints": NEXT_TILES,
            "text_config": {**TEXT, "model_type": "mistral"},
            "vision_config": CLIP,
        },
        images={**CROPPED, "image_grid_pinpoints": NEXT_TILES},
        processor=WITHOUT_CLASS,
    ),
    Sighted(  # as LLaVA-NeXT, with tiles made smaller where there are more than nine
        name="llava_onevision",
        classes=("LlavaOnevisionProcessor", "LlavaOnevisionImageProcessor"),
        place="<image>",
        tokens={**IMAGE, "video_token": "<video>"},
        config={
            "image_token_index": "<image>",
            "video_token_index": "<video>",
            "image_grid_pinpoints": ONEVISION_TILES,
            "text_config": {**TEXT, "model_type": "qwen2"},
            "vision_config": {**SIGLIP, "model_type": "siglip_vision_model"},
        },
        images={**SQUARE, "image_grid_pinpoints": ONEVISION_TILES},
        processor={"num_image_tokens": 64, "vision_feature_select_strategy": "full"},
    ),
    Sighted(  # an image of any size, merged 2 × 2
        name="qwen2_vl",
        classes=("Qwen2VLProcessor", "Qwen2VLImageProcessor"),
        place=QWEN_PLACE,
        tokens=QWEN_TOKENS,
        config={
            **QWEN_IDS,
            "text_config": QWEN_TEXT,
            "vision_config": {**QWEN_VISION, "embed_dim": 32},
        },
        images=QWEN_IMAGES,
    ),
    Sighted(  # merges 2 × 2, and attends within windows of 4 × 4 merged patches
        name="qwen2_5_vl",
        classes=("Qwen2_5_VLProcessor", "Qwen2VLImageProcessor"),
        place=QWEN_PLACE,
        tokens=QWEN_TOKENS,
        config={
            **QWEN_IDS,
            "text_config": QWEN_TEXT,
            "vision_config": {
                **QWEN_VISION,
                "intermediate_size": 48,
                "out_hidden_size": 32,
                "fullatt_block_indexes": [1],
            },
        },
        images=QWEN_IMAGES,
    ),
    Sighted(  # merges 2 × 2; what an earlier layer of its tower says is added within the text's
        name="qwen3_vl",
        classes=("Qwen3VLProcessor", "Qwen2VLImageProcessor"),
        place=QWEN_PLACE,
        tokens=QWEN_TOKENS,
        config={
            **QWEN_IDS,
            "text_config": QWEN_TEXT,
            "vision_config": {**QWEN3_VISION, "deepstack_visual_indexes": [0]},
        },
        images=QWEN3_IMAGES,
    ),
    Sighted(  # as Qwen3-VL's tower, before a text model most of whose attention is linear
        name="qwen3_5",
        classes=("Qwen3VLProcessor", "Qwen2VLImageProcessor"),
        place=QWEN_PLACE,
        tokens=QWEN_TOKENS,
        config={
            **QWEN_IDS,
            "text_config": {
                **QWEN_TEXT,
                "layer_types": ["linear_attention", "full_attention"],
                "linear_key_head_dim": 8,
                "linear_value_head_dim": 8,
                "linear_num_key_heads": 2,
                "linear_num_value_heads": 4,
            },
            "vision_config": QWEN3_VISION,
        },
        images=QWEN3_IMAGES,
    ),
    Sighted(  # tiles of 8 × 8 patches, 4 × 4 tokens, then an overview
        name="internvl",
        classes=("InternVLProcessor", "GotOcr2ImageProcessor"),
        place="<IMG_CONTEXT>",
        tokens={
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        config={
            "image_token_id": "<IMG_CONTEXT>",
            "image_seq_length": 16,
            "text_config": {**TEXT, "model_type": "qwen2"},
            "vision_config": {**VISION, "image_size": [112, 112]},
        },
        images={**SQUARE, "crop_to_patches": True},
        processor={"image_seq_length": 16},
    ),
    Sighted(  # tiles of 8 × 8 patches, 4 × 4 tokens, then an overview
        name="idefics3",
        classes=("Idefics3Processor", "Idefics3ImageProcessor"),
        place="<image>",
        tokens=IDEFICS_TOKENS,
        config={
            "image_token_id": "<image>",
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": {**VISION, "image_size": 112, "patch_size": 14},
        },
        images={"size": {"longest_edge": 4 * 112}, "max_image_size": {"longest_edge": 112}},
        processor={"image_seq_len": 16},
    ),
    Sighted(  # tiles of 8 × 8 patches, 2 × 2 tokens, then an overview
        name="smolvlm",
        classes=("SmolVLMProcessor", "SmolVLMImageProcessor"),
        place="<image>",
        tokens={**IDEFICS_TOKENS, "video_token": "<video>"},
        config={
            "image_token_id": "<image>",
            "scale_factor": 4,
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": {**VISION, "image_size": 128, "patch_size": 16},
        },
        images={"size": {"longest_edge": 4 * 128}, "max_image_size": {"longest_edge": 128}},
        processor={"image_seq_len": 4},
    ),
    Sighted(  # attends to image and prompt from both sides
        name="paligemma",
        classes=("PaliGemmaProcessor", "SiglipImageProcessor"),
        place="<image>",
        tokens=IMAGE,
        config={
            "image_token_index": "<image>",
            "hidden_size": 32,
            "projection_dim": 32,
            "text_config": {**TEXT, "model_type": "gemma", "vocab_size": 1536, "head_dim": 8},
            "vision_config": {**SIGLIP, "model_type": "siglip_vision_model"},
        },
        images={**SQUARE, "image_seq_length": 64},
    ),
    Sighted(  # 8 × 8 patches, 4 × 4 tokens; crops (pan and scan) are an option of each call
        name="gemma3",
        classes=("Gemma3Processor", "Gemma3ImageProcessor"),
        place="<start_of_image>",
        tokens={
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>",
        },
        config={
            "boi_token_index": "<start_of_image>",
            "eoi_token_index": "<end_of_image>",
            "image_token_index": "<image_soft_token>",
            "mm_tokens_per_image": 16,
            "text_config": {**TEXT, "head_dim": 8, "query_pre_attn_scalar": 8},
            "vision_config": SIGLIP,
        },
        images=SQUARE,
        processor={"image_seq_length": 16},
    ),
    Sighted(  # an image of any size as a row of patches, padded, and pooled 3 × 3
        name="gemma4",
        classes=("Gemma4Processor", "Gemma4ImageProcessor"),
        place="<|image|>",
        tokens={
            "boi_token": "<|image>",
            "eoi_token": "<image|>",
            "image_token": "<|image|>",
            "video_token": "<|video|>",
            "audio_token": "<|audio|>",
            "boa_token": "<|audio>",
            "eoa_token": "<audio|>",
        },
        config={
            "boi_token_id": "<|image>",
            "eoi_token_id": "<image|>",
            "image_token_id": "<|image|>",
            "video_token_id": "<|video|>",
            "text_config": {
                **TEXT,
                "head_dim": 8,
                "layer_types": ["sliding_attention", "full_attention"],
                "vocab_size_per_layer_input": 320,
                "hidden_size_per_layer_input": 8,
            },
            "vision_config": {
                **VISION,
                "num_key_value_heads": 4,
                "head_dim": 8,
                "position_embedding_size": 640,
            },
            "audio_config": None,
        },
        images={"max_soft_tokens": 70},
        processor={"image_seq_length": 70},
    ),
    Sighted(  # an image of any size, merged 2 × 2, with a token after each row
        name="mistral3",
        classes=("PixtralProcessor", "PixtralImageProcessor"),
        place="[IMG]",
        tokens=PIXTRAL_TOKENS,
        config={
            "image_token_index": "[IMG]",
            "text_config": {**TEXT, "model_type": "mistral"},
            "vision_config": {**PIXTRAL, "patch_size": 14},
        },
        images={"size": {"longest_edge": 140}, "patch_size": {"height": 14, "width": 14}},
        processor={"patch_size": 14, "spatial_merge_size": 2},
    ),
    Sighted(  # up to four tiles of 8 × 8 patches, to which the text has cross-attention
        name="mllama",
        classes=("MllamaProcessor", "MllamaImageProcessor"),
        place="<|image|>",
        tokens={"image_token": "<|image|>", "python_token": "<|python_tag|>"},
        config={
            "image_token_index": "<|image|>",
            "text_config": {**TEXT, "num_hidden_layers": 3, "cross_attention_layers": [1]},
            "vision_config": {
                **LAYERS,
                "num_global_layers": 1,
                "attention_heads": 4,
                "vision_output_dim": 64,
                "image_size": 112,
                "intermediate_layers_indices": [1],
            },
        },
        images=SQUARE,
    ),
    Sighted(  # tiles of 8 × 8 patches, 4 × 4 tokens, each after its number, then an overview
        name="aya_vision",
        classes=("AyaVisionProcessor", "GotOcr2ImageProcessor"),
        place="<image>",
        tokens={
            **IMAGE,
            "start_of_img_token": "<|START_OF_IMG|>",
            "end_of_img_token": "<|END_OF_IMG|>",
            "img_patch_token": "<|IMG_PATCH|>",
            "img_line_break_token": "<|IMG_LINE_BREAK|>",
        },
        config={
            "image_token_index": "<|IMG_PATCH|>",
            "text_config": {**TEXT, "model_type": "cohere2"},
            "vision_config": {**SIGLIP, "model_type": "siglip_vision_model"},
        },
        images={**SQUARE, "crop_to_patches": True},
        processor={"patch_size": 14, "downsample_factor": 2, "img_size": 112},
    ),
    Sighted(  # an image of any size, merged 2 × 2
        name="glm4v",
        classes=("Glm4vProcessor", "Glm4vImageProcessor"),
        place="<|begin_of_image|><|image|><|end_of_image|>",
        tokens={
            "image_token": "<|image|>",
            "video_token": "<|video|>",
            "image_start_token": "<|begin_of_image|>",
            "image_end_token": "<|end_of_image|>",
            "video_start_token": "<|begin_of_video|>",
            "video_end_token": "<|end_of_video|>",
        },
        config={
            "image_token_id": "<|image|>",
            "video_token_id": "<|video|>",
            "image_start_token_id": "<|begin_of_image|>",
            "image_end_token_id": "<|end_of_image|>",
            "video_start_token_id": "<|begin_of_video|>",
            "video_end_token_id": "<|end_of_video|>",
            "text_config": QWEN_TEXT,
            "vision_config": {
                **QWEN_VISION,
                "image_size": 112,
                "intermediate_size": 48,
                "out_hidden_size": 32,
            },
        },
        images={"size": {"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 64}},
    ),
    Sighted(  # an overview of 8 × 8 patches, 4 × 4 tokens, then tiles; tokens divide its rows
        name="ovis2",
        classes=("Ovis2Processor", "Ovis2ImageProcessor"),
        place="<image>",
        tokens={**IMAGE, "image_atom_token": "<IMG_ATOM>", **OVIS_INDICATORS},
        config={
            "image_token_id": "<IMG_ATOM>",
            "visual_indicator_token_ids": list(OVIS_INDICATORS.values()),
            "vocab_size": 320,
            "hidden_size": 32,
            "text_config": {**TEXT, "model_type": "qwen2"},
            "vision_config": {**VISION, "image_size": 112, "hidden_stride": 2, "vocab_size": 69},
        },
        images={**SQUARE, "crop_to_patches": True},
        processor={"image_seq_length": 16},
    ),
    Sighted(  # padded to a square
        name="deepseek_vl",
        classes=("DeepseekVLProcessor", "DeepseekVLImageProcessor"),
        place="<image_placeholder>",
        tokens={"image_token": "<image_placeholder>"},
        config={
            "image_token_id": "<image_placeholder>",
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": {**SIGLIP, "image_size": 128, "patch_size": 16},
        },
        images={"size": {"height": 128, "width": 128}},
        processor={"num_image_tokens": 64},
    ),
    Sighted(  # padded to a square; it also draws images, which nothing here asks for
        name="janus",
        classes=("JanusProcessor", "JanusImageProcessor"),
        place="<image_placeholder>",
        tokens={
            "image_token": "<image_placeholder>",
            "boi_token": "<begin_of_image>",
            "eoi_token": "<end_of_image>",
        },
        config={
            "image_token_id": "<image_placeholder>",
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": {
                **VISION,
                "image_size": 128,
                "projection_dim": 32,
                "num_image_tokens": 64,
            },
            "vq_config": {
                "num_embeddings": 16,
                "base_channels": 32,
                "latent_channels": 32,
                "channel_multiplier": [1, 1],
                "num_res_blocks": 1,
                "num_patches": 8,
                "projection_dim": 32,
                "image_token_embed_dim": 32,
            },
        },
        images={"size": {"height": 128, "width": 128}},
        processor={"num_image_tokens": 64},
    ),
    Sighted(  # several layers of its tower side by side
        name="vipllava",
        classes=("LlavaProcessor", "CLIPImageProcessor"),
        place="<image>",
        tokens=IMAGE,
        config={
            "image_token_index": "<image>",
            "vision_feature_layer": [-2, -1],
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": CLIP,
        },
        images=CROPPED,
        processor=WITHOUT_CLASS,
    ),
    Sighted(  # two towers; the one for videos has nothing to do
        name="video_llava",
        classes=("VideoLlavaProcessor", "VideoLlavaImageProcessor"),
        place="<image>",
        tokens={**IMAGE, "video_token": "<video>"},
        config={
            "image_token_index": "<image>",
            "video_token_index": "<video>",
            "image_seq_length": 64,
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": CLIP,
        },
        images=CROPPED,
        processor=WITHOUT_CLASS,
    ),
)


def species(name: str) -> Sighted:
    """The architecture of a name."""
    return next(sighted for sighted in ZOO if sighted.name == name)
