"""A run held fixed: with its norms and its attention weights as they were, a model is affine.

Then whatever is affine in the residual stream (a query, a key, a logit) is a sum over the parts
that were written into it: embeddings, heads and MLPs. Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits".
"""
