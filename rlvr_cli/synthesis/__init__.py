"""Recursive synthesis: operators that make new problems, gates that turn bad ones away, lineage."""
