"""The public Python API: the same names, options and records as the commands.

One command, one file; `attnviz/__init__.py` re-exports them.
"""
