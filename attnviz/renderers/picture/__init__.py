"""Results to matplotlib figures."""
