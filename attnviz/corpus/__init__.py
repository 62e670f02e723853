"""The corpus of a scan, its folder and its result: written by `scan`, read by `atlas`."""
