"""Cases of `attacks.py`: repetition."""

from attacks import Case

CASES: list[Case] = []
