"""`attnviz serve`."""
