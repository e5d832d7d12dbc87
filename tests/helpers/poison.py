"""Tasks for workers, good and bad: functions of a module, which every worker can import."""

import os
import signal
import time
from pathlib import Path

from d3s.errors import InputError


def double(number: float) -> float:
    return 2 * number


def variable(name: str) -> str | None:
    return os.environ.get(name)


def refuse(item: object) -> None:
    raise InputError(f"item={item} must be there. Look for it.")


def fail(item: object) -> None:
    raise ZeroDivisionError(f"of {item}")


def leave(code: int) -> None:
    os._exit(code)


def be_killed(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(seconds: float) -> None:
    time.sleep(seconds)


def note_and_die_first(path: str) -> int:
    """Number of the try; the first two end their worker."""
    notes = Path(path)
    tries = len(notes.read_text()) + 1 if notes.exists() else 1
    notes.write_text("x" * tries)
    if tries < 3:
        os._exit(7)
    return tries


def print_and_answer(_: object) -> str:
    os.write(1, b"words that are no answer\n")
    return "answer"


def first_and_job(first: str, job: str) -> str:
    return f"{first} {job}"


def call(job: tuple) -> object:
    """Call the function of a job."""
    work, argument = job
    return work(argument)


def by_name(job: list) -> object:
    """Call another of these functions."""
    name, argument = job
    return globals()[name](argument)
