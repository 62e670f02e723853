"""Commands, one a file: parse, call, render; no maths."""
