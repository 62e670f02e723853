"""Records to results: what a command and the Python API hand out, with all of its forms."""
