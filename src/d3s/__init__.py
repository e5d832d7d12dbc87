"""Metric depth with an honest error bar from one snapshot of a tiny two-lens camera."""

__version__ = "0.1.0"
