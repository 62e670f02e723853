"""What flows: tokens, captures, heads, traces, transforms and metrics, numpy only."""
