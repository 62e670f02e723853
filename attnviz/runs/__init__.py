"""From what was asked for to the records that answer it, one file per command.

The one place that orders models, transforms and analyses. Nothing here prints.
"""
