"""One file a command: options in, streams opened, exit code out."""
