"""The parts that commands share: options, texts to run, results, lines and files."""
