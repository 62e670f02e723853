"""A corpus: shards, a record of integers for each, and their exact merge.

Read `plan.py` first, then `count.py`: a shard to its record; `local.py` runs shards in processes.
"""
