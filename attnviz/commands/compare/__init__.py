"""`attnviz compare`."""
