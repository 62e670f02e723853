"""The terminal app: panes that show one text's patterns."""
