"""A folder for each command, and a file for a command that fits in one."""
