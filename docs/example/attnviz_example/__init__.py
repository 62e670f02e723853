"""What a package can add to attnviz: a command, a metric and a loader of models."""
