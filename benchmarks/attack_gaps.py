"""Cases of `attacks.py`: gaps."""

from attacks import Case

CASES: list[Case] = []
