"""The embedded domain: chains of two-digit arithmetic, a small policy that solves some of them, problem sets."""
