"""A weight as a bar of cells."""


def bar_of(share: float, cells: int, unicode: bool) -> str:
    """A bar of at most `cells` cells; a thin mark for what is too little for one."""
    full, thin = ("▇", "▏") if unicode else ("=", "-")
    n = round(max(0.0, min(1.0, share)) * cells)
    return full * n if n else thin if cells and share >= 0.005 else ""
