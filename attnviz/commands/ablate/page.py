"""The page of an ablation token by token, without a script: titles of cells hold their numbers."""

from html import escape

from attnviz.commands.ablate.record import TokenEffects
from attnviz.commands.ablate.shown import about_picture, named_part, token_labels
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import largest
from attnviz.draw.page import HEAD, filled, policies, policy, source
from attnviz.draw.page.maps import map_style, shade


def page(effects: TokenEffects) -> list[str]:
    """All parts and tokens, the part with the largest change first."""
    title, about, below = about_picture(effects.report)
    style, most = map_style(), largest(effects.changes) or 1.0
    labels = [escape(fenced(each)) for each in token_labels(effects)]
    names = "".join(f'<th class="token"><span>{label}</span></th>' for label in labels)
    rows = [f"<thead><tr><th></th>{names}</tr></thead>"]
    for i in effects.strongest:
        part, cells = named_part(effects, i), list[str]()
        for k, value in enumerate(effects.changes[i].tolist()):
            error = "" if effects.errors is None else f" ± {effects.errors[i, k]:.4f}"
            told = f"{part} at {labels[k]}: {value:+.4f}{error} nats"
            cells.append(f'<td class="{shade(value / most)}" title="{told}">{value:z.2f}</td>')
        rows.append(f"<tr><th>{part}</th>{''.join(cells)}</tr>")
    values = {
        "policies": policies(policy(style, "")),
        "style": style,
        "title": escape(f"{title}: the change at each token"),
        "about": escape(about),
        "below": escape("; ".join(below)),
        "rows": "\n".join(rows),
    }
    return [filled(source(HEAD, "commands/ablate/page/tokens.html"), values)]
