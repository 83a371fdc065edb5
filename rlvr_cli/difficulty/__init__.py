"""How hard problems are for a policy: pass rates, buckets, and what a dataset is worth to it."""
