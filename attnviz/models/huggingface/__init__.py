"""A model of any architecture that transformers has, as an engine. Read the files in this order:

- `call.py`: one call of an attention function: queries, keys and values, and the weights of rows
- `attention.py`: listens to these calls, and replaces them, at transformers' own extension point
- `layers.py`: which module is which layer, and where its projections are
- `capture.py`: a run whose rows are handed over, proven: times the values, they are the output
- `model.py`: the engines, a class for what a model can do; `load.py` makes one of a folder
- `head_parts.py`: every step of one head, and what a layer adds to the stream, by what sums up
- `interventions.py`: runs with vectors replaced, or links removed
- `vision.py`, `image_*.py`, `similarity.py`, `speech.py`: what is read beside texts or alone
- `frozen.py`: a run whose norms and attention are held fixed
"""
