"""The `consensus` method: the algorithm of the paper as printed."""
