"""A run held fixed: scores and logits as sums over its parts, and circuits."""
