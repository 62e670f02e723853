"""What workers of scans and trainings need, imported once in the process that they are forked from.

Without pandas, which pyarrow imports to make a table, a worker takes three times as long.
"""

import gc

import pandas
import pyarrow.parquet
import torch._dynamo

import attnviz.commands.scan.executors
import attnviz.commands.scan.worker
import attnviz.commands.train.loop
import attnviz.models.linking
import attnviz.models.reducing
import attnviz.models.scratch.native

__all__ = ["attnviz", "pandas", "pyarrow", "torch"]

# to look through all of that for garbage, a worker would copy it
gc.freeze()
