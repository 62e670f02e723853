"""A text with images to the tokens that a vision-language model reads."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import IdleOption, InputError, ModelError, option
from attnviz.models.chat import read_template, rendered
from attnviz.models.folder.processors import read_processor
from attnviz.models.huggingface.image_patches import sheet_grid
from attnviz.models.huggingface.vision import (
    ImageInputs,
    looks_ahead,
    read_images,
    seeing,
    vision_tokens,
)
from attnviz.models.loaded import ReadInput
from attnviz.records.places import MARK, RawImage, ReadAs, label_of
from attnviz.records.tokens import Chat, Token, numbered

if TYPE_CHECKING:
    from attnviz.models.huggingface.model import HuggingFaceModel

AROUND = {"<|image_pad|>": ("<|vision_start|>", "<|vision_end|>")}
"""The texts that a template writes around the mark of an image, if the processor does not."""
_processor = lru_cache(2)(read_processor)


def see(
    model: "HuggingFaceModel", text: str, pictures: Sequence[RawImage], how: ReadAs
) -> ReadInput:
    """As `LoadedModel.see`; of a view of a model that sees other images, the model itself."""
    model = replace(model, model=getattr(model.model, "plain", model.model))
    tokenizer = model.tokenizer
    assert tokenizer.folder is not None  # every engine of transformers has one
    processor = _processor(tokenizer.folder)
    if not how.special:
        check_plain(model, text)
    folder, count = None if how.whole else tokenizer.folder, len(pictures)
    marked, told = _marked(processor, folder, text, count)
    around = (tokenizer.bos if how.bos is None else how.bos) and not told
    read = read_images(
        processor, model.model, marked, pictures, around=around, context=tokenizer.context
    )
    if how.bos is not None and not how.whole:
        begins, templated = processor.tokenizer.bos_token, bool(told)
        _check_bos(begins, marked, read.text, bos=how.bos, templated=templated)
    tokens = tokenizer.encode(read.expanded, bos=around, special=True)
    check_same(model, tokens, read.ids)
    if model.kind == "encoder":
        return _within_vision(model, processor, read, told)
    ahead = looks_ahead(model.model, read)
    causal = model.causal if ahead is None else not ahead
    view = replace(model, model=seeing(model.model, read), causal=causal)
    keys = crossed_tokens(read) if model.kind == "cross" else ()
    placed = _placed(tokens, read)
    spans = tuple(span for span, _ in read.spans)
    return ReadInput(view, read.text, placed, read.images, told, spans, keys)


def check_same(model: "HuggingFaceModel", tokens: Sequence[Token], ids: tuple[int, ...]) -> None:
    """Check that a processor's tokens are the tokenizer's, but perhaps for a BOS."""
    own = tuple(token.id for token in tokens)
    if ids not in (own, own[1:]):
        raise ModelError(
            f"the processor of {model.identity.name} makes other tokens of this text than its "
            "tokenizer",
            "use the processor that belongs to the model",
        )


def _within_vision(
    model: "HuggingFaceModel", processor: Any, read: ImageInputs, told: tuple[str, ...]
) -> ReadInput:
    """The patches of an image as its side reads them, which are queries and keys.

    Raises:
        ModelError: it reads others, such as those within a window, or of all tiles in a row.
    """
    image, *others = read.images
    if others:
        raise InputError(
            f"{option('kind', 'encoder')} shows the patches of one image, but {len(read.images)} "
            "are given",
            "give one",
        )
    grid = sheet_grid(processor, model.model, image.raw)
    view = seeing(model.model, replace(read, sheet=grid.number))
    before = vision_tokens(view, read) - len(grid.patches)
    if before not in (0, 1):
        raise ModelError(
            f"the vision side of {model.identity.architecture} does not attend to the patches of "
            "one image at once: it has windows, padding, or all tiles in a row",
            f"leave {option('kind')} out, to see what its text attends to",
        )
    images = (replace(image, views=(grid.view,)),)
    named = [("[class]", None)] * before + [(label_of(p, images), p) for p in grid.patches if p]
    tokens = numbered(
        replace(
            Token(0, read.token, "", 0, 0, special=True, name=name),
            image=None if patch is None else 0,
            patch=patch,
        )
        for name, patch in named
    )
    return ReadInput(replace(model, model=view), read.text, tokens, images, told, keys=tokens)


def _check_bos(begins: str | None, before: str, after: str, *, bos: bool, templated: bool) -> None:
    """Check that neither a template nor a processor, from `before` to `after`, sets the BOS."""
    if templated:
        raise IdleOption(
            f"{option('bos')} does nothing beside a chat template, which begins the prompt",
            f"leave it out, or place the image in the text with {MARK}",
        )
    if not bos and begins and after.count(begins) > before.count(begins):
        raise IdleOption(
            f"the model's image processor writes {begins} itself", f"leave {option('bos')} out"
        )


def check_plain(model: "HuggingFaceModel", text: str) -> None:
    """Check that a text spells no special token, since those of the images are read as such."""
    added = model.tokenizer.backend.get_added_tokens_decoder().values()
    plain = text.replace(MARK, "")
    spelled = next((t.content for t in added if t.special and t.content in plain), None)
    if spelled is not None:
        raise InputError(
            f"the text spells the special token {spelled}",
            f"add {option('special')} to have it read as that, or change the text",
        )


def _marked(
    processor: Any, folder: Path | None, text: str, images: int
) -> tuple[str, tuple[str, ...]]:
    """The text with the model's own mark in the place of each image, and what was done for it.

    The places are those of the text; else those of the model's chat template; else its beginning.
    `folder`: that of the template, or None if it has made this text, with all places.
    """
    mark = processor.image_token
    if folder is None:
        if text.count(mark) != images:
            raise InputError(
                f"the model's chat template makes {text.count(mark)} places for {images} "
                f"image{'s' * (images != 1)}",
                f"give the prompt as a text with {MARK} in the place of each",
            )
        return text, ()
    before, after = AROUND.get(mark, ("", ""))
    places = text.count(MARK)
    if mark != MARK and text.count(mark) == images and not places:
        return text, ()
    if places == images:
        return text.replace(MARK, f"{before}{mark}{after}"), ()
    if places:
        raise InputError(
            f"the text has {places} {MARK} for {images} image{'s' * (images != 1)}",
            "give as many of both",
        )
    content = [*({"type": "image"} for _ in range(images)), {"type": "text", "text": text}]
    chat = Chat({"messages": [{"role": "user", "content": content}]}, ())
    template = read_template(folder, chat)
    shown = None if template is None else rendered(template, chat)
    if shown is not None and shown.text.count(mark) == images:
        return shown.text, shown.notes
    return f"{before}{mark}{after}" * images + text, ()


def _placed(tokens: Sequence[Token], read: ImageInputs) -> tuple[Token, ...]:
    """The tokens of the expanded text as those of the text, each of an image with its place."""
    if read.crossed:
        return _marked_tokens(tokens, read)
    placed = list[Token]()
    spans = iter(enumerate(read.spans))
    number, (span, new) = next(spans)
    cells = iter(read.cells[number])
    for token in tokens:
        if token.start >= new[1] and not token.special and number + 1 < len(read.spans):
            number, (span, new) = next(spans)
            cells = iter(read.cells[number])
        inside = new[0] <= token.start < new[1] and not token.special
        if inside:
            place = next(cells) if token.id == read.token else None
            name = token.label if place is None else label_of(place, read.images)
            own = Token(0, token.id, "", span[0], span[0], special=True, name=name)
            placed.append(replace(own, image=number, patch=place))
            continue
        before = ((b - a, d - c) for (a, b), (c, d) in read.spans if d <= token.start)
        shift = sum(expanded - own for own, expanded in before)  # characters that images add
        placed.append(replace(token, start=token.start - shift, end=token.end - shift))
    return numbered(placed)


def _marked_tokens(tokens: Sequence[Token], read: ImageInputs) -> tuple[Token, ...]:
    """The tokens of a text beside its images, each mark with the image that it stands for."""
    numbers = iter(range(len(read.images)))
    return tuple(
        replace(token, image=next(numbers)) if token.id == read.token else token for token in tokens
    )


def crossed_tokens(read: ImageInputs) -> tuple[Token, ...]:
    """The tokens of images that a text has cross-attention to: of each tile a class token first.

    Behind them are those of the tiles that fill up an image's place, which have none.
    """
    every = list[Token]()
    tiles = read.beside["pixel_values"].shape[2]
    for number, cells in enumerate(read.cells):
        real = int(read.beside["aspect_ratio_mask"][0, number].sum())
        per_tile = len(cells) // real
        names = ["[class]" if n % per_tile == 0 else "[patch]" for n in range(len(cells))]
        names = [label_of(p, read.images) if p else n for p, n in zip(cells, names, strict=True)]
        names += ["[padding]"] * (per_tile * (tiles - real))
        for name, place in zip_longest(names, cells):
            own = Token(0, read.token, "", 0, 0, special=True, name=name)
            every.append(replace(own, image=number, patch=place))
    return numbered(every)
