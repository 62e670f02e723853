"""The sources of texts: an argument, a file, standard input, a stream of lines, a capture."""
