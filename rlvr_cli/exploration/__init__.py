"""Deep Dense Exploration (DEEP-GRPO, arXiv 2602.14169): segments, recoverability, and the choice of pivots."""
