"""English and French of the little world: sentence pairs whose word alignment is known."""
