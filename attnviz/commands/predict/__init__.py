"""`attnviz predict`."""
