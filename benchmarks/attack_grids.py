"""Cases of `attacks.py`: grids."""

from attacks import Case

CASES: list[Case] = []
