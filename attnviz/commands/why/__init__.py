"""`attnviz why`."""
