"""What every command is made of: options, texts to run, results, lines, files."""
