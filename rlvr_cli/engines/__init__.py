"""What can sample: one small interface, one file an engine."""
