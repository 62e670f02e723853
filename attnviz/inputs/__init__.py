"""Where texts come from: an argument, a file, standard input, a stream of lines, a capture."""
