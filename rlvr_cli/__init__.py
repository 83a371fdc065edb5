"""rlvr: reinforcement learning with verifiable rewards as separate Unix stages."""

__version__ = "0.1.0"
