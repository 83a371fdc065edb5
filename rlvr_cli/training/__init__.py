"""One policy-gradient update: advantages, loss, mini-batches, checkpoints."""
