"""Results on images: the share of attention on them, and the additions to a cosine (CLIP)."""

from dataclasses import replace

import numpy as np

from attnviz.commands.show.outputs import Show
from attnviz.draw.titles import beginning
from attnviz.errors import UsageError, readable
from attnviz.kit.choose import HeadPlan, plan_heads
from attnviz.records.capture import Capture, FloatArray, ModelIdentity
from attnviz.records.exhibit import Choice, Exhibit, HeadMap, whole_map
from attnviz.records.heads import every_head, listed
from attnviz.records.images import ImageShare, share_on_images
from attnviz.records.merging import groups_of
from attnviz.records.places import class_rows
from attnviz.records.transforms import Additions, Merged


def plan_additions(identity: ModelIdentity, show: Show) -> HeadPlan:
    """The heads over which is summed: all, unless some are named."""
    if show.transforms.any:
        raise UsageError(
            "what patches add to a cosine is shown unchanged",
            "leave out every option that changes it",
        )
    return plan_heads(identity, (), replace(show.heads, everything=not show.heads.named))


def added_up(exhibit: Exhibit, choice: Choice) -> Exhibit:
    """The sum over the heads, and what is left of the cosine.

    The rest: the embedding, MLPs, biases, and what they and later layers make of attention.
    """
    from attnviz.draw.overlay import image_facts

    capture, maps = exhibit.capture, exhibit.maps
    if len(maps) > 1:
        whole = np.sum([whole_map(each).weights for each in maps], axis=0, dtype=np.float64)
        weights: FloatArray = np.asarray(whole, np.float32)
        maps = (HeadMap(None, None, "sum", weights=weights),)
    (cosine,) = (each.cosine for each in capture.transforms if isinstance(each, Additions))
    added = float(whole_map(maps[0]).weights.sum())
    several = len(choice.heads) > 1
    every = several and choice.heads == every_head(capture.model.heads_per_layer)
    heads = "all heads" if every else listed(choice.heads)
    caption = (
        f"cosine of image and text {cosine:.3f}: {heads} add{'' if several else 's'} {added:+.3f} "
        f"directly, all else {cosine - added:+.3f}"
    )
    text = f"{readable(capture.model.name)}, “{beginning(capture.text)}”"
    subtitle = f"{text}, {image_facts(capture)}"
    return replace(exhibit, maps=maps, caption=caption, subtitle=subtitle)


def on_images(captured: Capture, exhibit: Exhibit, show: Show) -> ImageShare | None:
    """The share of the rows shown, or without --query of all after an image, that is on images.

    `captured` is as the exhibit before its transforms: its image tokens are apart.
    """
    asked = show.needs.one_query or bool(show.filters.queries)
    seen, tokens = captured.allowed_count(), captured.query_tokens
    images = [
        [t.index for t in captured.key_tokens if t.image == n] for n in range(len(captured.images))
    ]
    plain = all(isinstance(each, Merged) for each in exhibit.capture.transforms)
    first = min((keys[0] for keys in images if keys), default=None)
    if first is None or captured.signed or not plain or not captured.layers:
        return None
    starts = set(range(len(tokens)))
    for unit in show.transforms.merged:  # a merged token begins where one of each kind does
        starts &= {group.start for group in groups_of(captured, unit)[0]}
    bounds = [*sorted(starts), len(tokens)]
    text = [t.index for t in tokens if not t.inset and seen[t.index] > first]
    of = [i for q in exhibit.queries for i in range(*bounds[q : q + 2])] if asked else text
    rows = [i for i in of if not tokens[i].inset]
    if captured.image_alone:
        text = []  # what all of its tokens attend to may be what it is about, and no sink
        rows = list(class_rows(tokens) or range(len(tokens)))
        rows = list(exhibit.queries) if show.filters.queries else rows
    if not rows:
        return None
    heads = [weights for layer in captured.layers for weights in layer.weights]
    return share_on_images(heads, images, text, rows)
