"""The addition of each image token, through each head, to the similarity with a text (CLIP).

Gandelsman, Efros & Steinhardt 2024, "Interpreting CLIP's Image Representation via Text-Based
Decomposition", arXiv 2310.05916, section 3: the class token's last vector is the sum of what all
heads move to it, c_lhj = a_lhj v_lhj W_O, of what MLPs add, biases and its embedding. With the
last LayerNorm's mean and scale held at those of the run, the cosine is linear in that vector:

    cos = Σ ⟨c_lhj, u⟩ + rest,  u = centred(γ ∘ Pᵀt) / (σ ‖e‖)

e: the image's embedding; t: the text's, of length 1; P: the projection; γ, σ: the LayerNorm's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attnviz.models.contributing import Writing
from attnviz.models.engine import numbers
from attnviz.models.huggingface.attention import forward, hooked
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.capture import ProvenRows
from attnviz.models.huggingface.head_outputs import Writings
from attnviz.models.huggingface.image_encoders import ImageEncoder
from attnviz.models.huggingface.vision import check_fits
from attnviz.models.loaded import ReadInput
from attnviz.models.tokenizer import TextTokenizer
from attnviz.records.capture import Consumer, PatternBlock, Wanted
from attnviz.records.places import RawImage, ReadAs
from attnviz.records.tokens import Ids, Token
from attnviz.records.transforms import Additions


@dataclass(frozen=True, kw_only=True)
class ClipSight(ImageEncoder):
    """The image side of CLIP, which can be given the text to look for.

    `towers`: the whole model. `reader`: the tokenizer of its texts. `toward` (d): u, where a text
    is given; rows are then what keys add to the cosine, and else weights.
    """

    towers: Any
    reader: TextTokenizer
    toward: Tensor | None = None

    @property
    def matches(self) -> bool:
        return True

    def see(self, text: str, pictures: Sequence[RawImage], how: ReadAs) -> ReadInput:
        seen = super().see("", pictures, how)
        if not text:
            return seen
        bos = self.reader.bos if how.bos is None else how.bos
        tokens = self.reader.encode(text, bos=bos, special=how.special)
        check_fits(tokens, self.reader.context)
        assert isinstance(seen.model, ClipSight)
        toward, cosine = direction(self.towers, [t.id for t in tokens], seen.model.inputs(()))
        view = replace(seen.model, toward=toward, kind="cross")
        whole_text = Token(0, 0, text, 0, len(text))
        return replace(
            seen,
            model=view,
            text=text,
            tokens=(whole_text,),
            keys=seen.tokens,
            transforms=(Additions(cosine),),
        )

    @torch.inference_mode()
    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        if self.toward is None:
            return super().run(ids, wanted, consume, target)
        toward = self.toward

        def written(layer: int, call: AttentionCall, writing: Writing) -> None:
            heads, first = wanted.heads[layer], torch.zeros(1, dtype=torch.int64)
            rows = ProvenRows().of(call, layer, heads, first)(first)[0].double()  # (h, 1, n)
            adds = rows * writing.along(toward)[:, None]
            consume(PatternBlock(layer, heads, first.numpy(), numbers(adds[list(heads)])))

        with Writings(self.model, wanted.heads, "self", written).watched():
            forward(self.model.base_model, **self.inputs(ids))
        return None


@torch.inference_mode()
def direction(towers: Any, ids: Ids, image: dict[str, Any]) -> tuple[Tensor, float]:
    """u (d), and the cosine of an image and the tokens of a text, in float64."""
    read = list[Tensor]()

    def see(_module: Any, args: tuple[Tensor, ...]) -> None:
        read.append(args[0])

    norm = towers.vision_model.post_layernorm
    device = image["pixel_values"].device
    with hooked([norm.register_forward_pre_hook(see)]):
        made = forward(towers, input_ids=torch.tensor([list(ids)], device=device), **image)
    text, x = made.text_embeds[0].double(), read[-1].reshape(-1).double()
    text = text / text.norm()
    scale = (x.var(unbiased=False) + norm.eps).sqrt()
    normed = (x - x.mean()) / scale * norm.weight.double() + norm.bias.double()
    projection = towers.visual_projection.weight.double()  # (e, d)
    embedding = projection @ normed
    along = norm.weight.double() * (projection.T @ text) / (scale * embedding.norm())
    return along - along.mean(), float(embedding @ text / embedding.norm())
