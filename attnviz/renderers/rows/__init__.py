"""Results as rows: plain values under declared names, for pipes, for files and for Python.

One file holds the rows of one command: a `TypedDict` declares the names, types and order of their
values, a function makes them of a record. `attnviz schema` prints the declarations.
"""
