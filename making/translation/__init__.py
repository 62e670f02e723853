"""The little world in English and French: sentence pairs with a known word alignment."""
