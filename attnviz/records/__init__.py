"""The records: tokens, captures, heads, traces, transforms and metrics; numpy only."""
