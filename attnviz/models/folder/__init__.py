"""Readers of a model's folder; all is checked before anything is built from it."""
