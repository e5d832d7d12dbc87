"""One process of a sweep: jobs come in as lines, and what became of them goes out as lines.

An answer begins with a space, and the words of a `D3SError` with an exclamation mark.
"""

import json
import os
import sys
from logging import ERROR, getLogger
from queue import SimpleQueue
from threading import Thread

from d3s.errors import D3SError
from d3s.evaluate.jobs import do


def main() -> None:
    """Do jobs until nobody asks any more."""
    import cv2

    cv2.setNumThreads(1)
    getLogger("d3s").setLevel(ERROR)  # that loops are compiled need not be said by every worker
    # Lines are ours alone: what a library prints goes where errors go.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        questions: SimpleQueue[str] = SimpleQueue()
        Thread(target=_listen, args=(questions,), daemon=True).start()
        while True:
            answers.write(_answer(questions.get()) + "\n")
            answers.flush()


def _listen(questions: "SimpleQueue[str]") -> None:
    """Take in jobs; when nobody is there any more, end at once, in the middle of a trial."""
    for line in sys.stdin:
        questions.put(line)
    os._exit(0)


def _answer(line: str) -> str:
    try:
        return f" {do(line)}"
    except D3SError as error:
        return f"!{json.dumps(str(error))}"


if __name__ == "__main__":
    main()
