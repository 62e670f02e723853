"""Exhibits to what is shown: a Rich renderable or a matplotlib Figure; none prints."""
