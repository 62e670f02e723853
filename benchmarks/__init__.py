"""Speed and memory of attnviz against what a user would pick instead: `python -m benchmarks`."""
