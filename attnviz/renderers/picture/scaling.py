"""Which colours an exhibit's picture is drawn in."""

from attnviz.data.capture import FloatArray
from attnviz.data.exhibit import Exhibit
from attnviz.renderers.picture.paint import DIVERGING, Scale, scale_for, signed_scale
from attnviz.renderers.picture.words import PictureOptions


def scale_of(exhibit: Exhibit, options: PictureOptions, matrices: list[FloatArray]) -> Scale:
    """One scale for all maps of the exhibit; a diverging one for what has a sign."""
    if exhibit.capture.signed:
        cmap = DIVERGING if options.cmap == PictureOptions.cmap else options.cmap
        several = len(exhibit.maps) > 1
        return signed_scale(cmap, matrices, "score ÷ the head's largest" if several else "score")
    return scale_for(options.cmap, options.color_scale, matrices)
