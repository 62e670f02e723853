"""`attnviz ablate`."""
