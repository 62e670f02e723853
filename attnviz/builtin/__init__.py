"""The bundled models, their cards, and the words behind "known for"."""
