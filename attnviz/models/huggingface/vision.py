"""The inputs of a vision-language model for images, and a view of the model that sees them.

Transformers' own processor makes the inputs, and the model is run on them as it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor

from attnviz.errors import InputError, ModelError
from attnviz.models.engine import EnoughSeen
from attnviz.models.folder.files import cut
from attnviz.models.folder.tokenizer import TYPES
from attnviz.models.huggingface.attention import forward, recording, vision_of
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.image_patches import Patches, seen_image
from attnviz.records.places import RawImage, SeenImage

IDLE = ("attention_mask", "labels")
"""The processor's outputs that the model does not need for a single text."""
OF_TOKENS = ("mm_token_type_ids", "token_type_ids")
"""The inputs with a value for each token (1, n): whether it is one of an image."""


@dataclass(frozen=True, eq=False)
class ImageInputs:
    """A prompt with images, as its model is given it.

    `text`: what is read, with the model's own mark in the place of each image; `expanded`: with as
    many marks as an image has tokens; `spans`: for each image its characters in both. `beside`: the
    arguments of a forward pass beside the `ids` (n); `cells`: for each image the places of its
    tokens that have the id `token`, in order; -1: the text has none. `crossed`: they are not among
    those of the text, which has cross-attention to them (Llama 3.2 Vision). `sheet`: that of an
    image of which the attention within it is recorded.
    """

    text: str
    expanded: str
    spans: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    ids: tuple[int, ...]
    token: int
    beside: Mapping[str, Any]
    images: tuple[SeenImage, ...]
    cells: tuple[Patches, ...]
    crossed: bool = False
    sheet: int = 0


def read_images(
    processor: Any, model: Any, text: str, raws: Sequence[RawImage], *, around: bool, context: int
) -> ImageInputs:
    """Run a processor on its images, and on a text in which each of them has its mark.

    `around`: put the tokenizer's special tokens around the text. `context`: the most tokens.
    """
    from PIL import Image

    for raw in raws:
        check_sides(raw)
    token, images = image_token(model), [Image.fromarray(raw.pixels) for raw in raws]
    mark = processor.tokenizer.convert_ids_to_tokens(token)
    with processing(model):
        made, replaced = _processed(processor, text, images, around=around)
        images.clear()  # of large images, hundreds of megabytes
        _check_room(made["input_ids"][0], token, context)
        counts = [each["replacement"].count(mark) for each in replaced["offsets"]]
        crossed = CROSSED in made
        counts = _of_tiles(model, made) if crossed else counts
        seen = [
            seen_image(processor, model, raw, number, count)
            for number, (raw, count) in enumerate(zip(raws, counts, strict=False))
        ]
    spans = [(each["span"], each["new_span"]) for each in replaced["offsets"]]
    if crossed:
        spans = [(at.span(), at.span()) for at in re.finditer(re.escape(mark), replaced["after"])]
    return ImageInputs(
        text=replaced["before"],
        expanded=replaced["after"],
        spans=tuple(spans),
        ids=tuple(made.pop("input_ids")[0].tolist()),
        token=token,
        beside=typed({k: v for k, v in made.items() if k not in IDLE}, model.dtype),
        images=tuple(image for image, _ in seen),
        cells=tuple(cells for _, cells in seen),
        crossed=crossed,
    )


CROSSED = "cross_attention_mask"
"""The mask of the tiles that each token has cross-attention to (1, n, images, tiles)."""


def _of_tiles(model: Any, made: Mapping[str, Any]) -> list[int]:
    """The number of tokens of each image's tiles, their class tokens among them."""
    vision = model.config.vision_config
    patches = (vision.image_size // vision.patch_size) ** 2
    return [int(tiles.sum()) * (patches + 1) for tiles in made["aspect_ratio_mask"][0]]


def one_image(name: str, pictures: Sequence[RawImage]) -> RawImage:
    """The image of a model that reads one at a time, checked."""
    if len(pictures) != 1:
        raise InputError(
            f"{name} reads one image at a time, but {len(pictures)} are given", "give one"
        )
    check_sides(pictures[0])
    return pictures[0]


def check_fits(tokens: Sequence[Any], context: int) -> None:
    """Check that a model takes this number of tokens of a text."""
    if len(tokens) > context:
        raise InputError(
            f"the text has {len(tokens)} tokens, but the model takes at most {context}",
            "shorten it",
        )


LEAST_SIDE, MOST_LONG = 4, 200
"""The fewest pixels of a side, and how many times as long the other one may be.

Processors take fewer for colours, and make gigabytes of an image of 30,000 by 1.
"""


def check_sides(raw: RawImage) -> None:
    short, long = sorted(raw.size)
    width, height = raw.size
    if short >= LEAST_SIDE and long <= MOST_LONG * short:
        return
    raise InputError(
        f"the image {raw.name} has {width:,} × {height:,} pixels, but attnviz reads images of "
        f"at least {LEAST_SIDE} pixels along each side, the longer at most {MOST_LONG} times the "
        "shorter",
        "cut it, or pad it",
    )


def _check_room(ids: Tensor, token: int, context: int) -> None:
    """Check that the images leave room for the text."""
    if len(ids) > context:
        raise InputError(
            f"the text has {len(ids):,} tokens, {int((ids == token).sum()):,} of them of images, "
            f"but the model takes at most {context:,}",
            "give fewer or smaller images",
        )


def typed(values: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Inputs whose pixels have the type of a model's numbers."""
    numbers = {k for k, v in values.items() if isinstance(v, Tensor) and v.is_floating_point()}
    return {k: v.to(dtype) if k in numbers else v for k, v in values.items()}


@contextmanager
def processing(model: Any) -> Iterator[None]:
    """Turn what a processor raises into one error, and keep what it warns of to itself."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:  # any: it computes with the settings of the folder
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ModelError(
            f"the image processor of {model.config.model_type} does not take this image "
            f"({cut(reason)})",
            "try another image",
        ) from None
    finally:
        logging.set_verbosity(before)


def _processed(
    processor: Any, text: str, images: list[Any], *, around: bool
) -> tuple[Any, dict[str, Any]]:
    """The processor's output for a text and its images, and its replacements of their marks."""
    replaced: dict[str, Any] = {"before": text, "after": text, "offsets": []}

    def keep(texts: list[str], *others: Any, **more: Any) -> Any:
        replaced["before"] = texts[0]
        known = partial(type(processor).get_text_with_replacements, processor, texts)
        after, offsets = known(*others, **more)
        replaced.update(after=after[0], offsets=offsets[0])
        return after, offsets

    def lay_out(*args: Any, **more: Any) -> Any:
        result = type(processor).prepare_inputs_layout(processor, *args, **more)
        replaced["before"] = replaced["after"] = result[1][0]  # Llama 3.2 Vision replaces nothing
        return result

    processor.get_text_with_replacements, processor.prepare_inputs_layout = keep, lay_out
    try:
        made = processor(images=images, text=[text], return_tensors="pt", add_special_tokens=around)
    finally:
        del processor.get_text_with_replacements, processor.prepare_inputs_layout
    return made, replaced


def image_token(model: Any) -> int:
    """The id of the token that parts of an image replace."""
    names = ("image_token_id", "image_token_index")
    found = (getattr(model.config, name, None) for name in names)
    token = next((id_ for id_ in found if isinstance(id_, int)), None)
    if token is None:
        raise ModelError(f"{model.config.model_type} reads no images", "use another model")
    return token


# A model that sees images: the same modules, whose forward passes are given what is beside the ids.


def seeing(model: Any, given: ImageInputs) -> Any:
    """A view of a model that reads these images, wherever it runs over their tokens."""
    view = _view(model, partial(beside, given))
    for each in (view, view.base_model):
        each.given_images = given
    return view


def _view(model: Any, more: Callable[[Tensor], dict[str, Any]]) -> Any:
    """A view of a model that is given `more` beside ids.

    The model itself stays as it is, and all modules below the body are its own.
    """
    body, view = model.base_model, copy(model)
    view._modules = dict(model._modules)
    if body is not model:
        seen_body = copy(body)
        seen_body.forward = _given(body.forward, more)
        view._modules[model.base_model_prefix] = seen_body
    view.forward = _given(model.forward, more)
    vars(view).update(plain=model, more=more)  # not as one of its modules
    if hasattr(model, "generate"):
        view.generate = model.generate  # what it keeps between steps, it keeps in the model
    return view


def float64_copy(model: Any) -> Any:
    """A copy of a model, or of a view of one with images, in float64 on the CPU."""
    given = getattr(model, "given_images", None)
    if types := getattr(model, "given_types", None):
        return telling(float64_copy(model.plain), types[0], types[1])
    if given is None:
        return deepcopy(model).cpu().double()
    precise = replace(given, beside=typed(given.beside, torch.float64))
    return seeing(float64_copy(model.plain), precise)


def telling(model: Any, ids: Tensor, types: Tensor) -> Any:
    """A view of a model that gets the types (1, n) of the tokens of a pair, by their ids."""

    def more(given: Tensor) -> dict[str, Any]:
        same = given.shape[1:] == ids.shape[1:] and bool((given == ids.to(given)).all())
        return {TYPES: types.to(given).expand_as(given)} if same else {}

    view = _view(model, more)
    view.given_types = ids, types
    if hasattr(model.config, "encoder"):  # which is also run by itself
        encoder = _view(model.get_encoder(), more)
        view.get_encoder = lambda: encoder
    return view


def _given(forward: Any, more: Callable[[Tensor], dict[str, Any]]) -> Any:
    """A forward pass that is given more where its ids are those that this is for."""

    @wraps(forward)
    def with_images(*args: Any, **kwargs: Any) -> Any:
        ids = args[0] if args else kwargs.get("input_ids")
        if isinstance(ids, Tensor) and not any("pixel_values" in name for name in kwargs):
            said = {name: value for name, value in kwargs.items() if value is not None}
            kwargs |= more(ids) | said
        return forward(*args, **kwargs)

    return with_images


def looks_ahead(model: Any, given: ImageInputs) -> bool | None:
    """Whether tokens attend to later ones if images are among them, or None for as in any text.

    It is seen on a few tokens, without pixels: the kind of each decides what the mask hides.
    """
    kinds = [name for name in OF_TOKENS if name in given.beside]
    if not kinds:
        return None
    text = next((id_ for id_ in reversed(given.ids) if id_ != given.token), given.token)
    ids = torch.tensor([[text, given.token, given.token, text]], device=model.device)
    few = beside(given, ids)
    ahead = False

    def on_call(call: AttentionCall) -> None:
        nonlocal ahead
        ahead |= bool(call.visible().triu(1).any())

    with torch.inference_mode(), recording(model, on_call):
        forward(
            model.base_model, input_ids=ids, use_cache=False, **{name: few[name] for name in kinds}
        )
    return ahead


def vision_tokens(model: Any, given: ImageInputs) -> int:
    """The number of an image's tokens, in one row of a batch, in the first layer of its side."""
    vision, found = set(vision_of(model).modules()), 0

    def on_call(call: AttentionCall) -> None:
        nonlocal found
        if call.module in vision:
            found = call.q.size(1)
            raise EnoughSeen

    with torch.inference_mode(), recording(model, on_call), suppress(EnoughSeen):
        forward(model.base_model, input_ids=torch.tensor([given.ids], device=model.device))
    return found


def of_text(model: Any, ids: Tensor) -> Tensor:
    """A mask of the ids (1, n) that are tokens and not parts of an image (n)."""
    given = getattr(model, "given_images", None)
    return torch.ones_like(ids[0]).bool() if given is None else ids[0] != given.token


def beside_of(model: Any, ids: Tensor) -> dict[str, Any]:
    """The inputs beside ids (B, n) for a view of a model; nothing for another model."""
    more = vars(model).get("more")
    return {} if more is None else more(ids)


def beside(given: ImageInputs, ids: Tensor) -> dict[str, Any]:
    """The inputs beside ids (B, n) that hold the tokens of all images.

    Nothing where none of the tokens is one of an image, as in the later steps of an answer; but
    for a model whose text has none.
    """
    here, prompt = ids == given.token, torch.tensor(given.ids) == given.token
    if given.token >= 0 and not here.any():
        return {}
    more: dict[str, Any] = {}
    for name, value in given.beside.items():
        if name in OF_TOKENS:  # one value for tokens of images, another for those of text
            of_images, of_text = value[0][prompt][0], value[0][-1]
            more[name] = torch.where(here, of_images.to(ids), of_text.to(ids)).to(value.dtype)
        elif name == CROSSED:  # tokens after the text attend to what its last token attends to
            after = value[:, -1:].expand(-1, max(0, ids.size(1) - value.size(1)), -1, -1)
            rows = torch.cat([value, after], dim=1)[:, : ids.size(1)]
            more[name] = rows.repeat(len(ids), 1, 1, 1).to(ids.device)
        elif isinstance(value, Tensor):
            more[name] = value.repeat([len(ids), *[1] * (value.dim() - 1)]).to(ids.device)
        else:
            more[name] = value
    return more
