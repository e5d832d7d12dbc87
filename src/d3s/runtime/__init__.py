"""Compiled loops, threads, SIMD vectors and scratch memory: how arrays are computed fast."""
