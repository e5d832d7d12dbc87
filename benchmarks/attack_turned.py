"""Cases of `attacks.py`: turned."""

from attacks import Case

CASES: list[Case] = []
