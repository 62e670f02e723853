"""What a package can add to attnviz: a command, a metric, and models by their names."""
