"""Exhibits to something to look at: a Rich renderable or a matplotlib Figure; none prints."""
