"""One process of a sweep: jobs come in as lines, and what became of them goes out as lines.

An answer begins with a space, and the words of a `D3SError` with an exclamation mark.
"""

import json
import os
import sys

from d3s.errors import D3SError
from d3s.evaluate.jobs import do


def main() -> None:
    """Do jobs until there are none, or nobody listens any more."""
    import cv2

    cv2.setNumThreads(1)
    # Lines are ours alone: what a library prints goes where errors go.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            for line in sys.stdin:
                answers.write(_answer(line) + "\n")
                answers.flush()
        except BrokenPipeError:  # who asked is gone
            os._exit(0)


def _answer(line: str) -> str:
    try:
        return f" {do(line)}"
    except D3SError as error:
        return f"!{json.dumps(str(error))}"


if __name__ == "__main__":
    main()
