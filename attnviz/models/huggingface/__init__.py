"""Any other architecture, run through transformers."""
