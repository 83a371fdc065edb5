"""One file a stage: the generator function itself."""
