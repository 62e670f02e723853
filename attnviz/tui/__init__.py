"""The terminal app: panes to look around in one text's patterns."""
