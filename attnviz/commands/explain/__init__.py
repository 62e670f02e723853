"""`attnviz explain`."""
