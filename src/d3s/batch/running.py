"""`run`: a function over many jobs, here, in processes or on a Dask cluster; `results`: kept.

Both places are executors of `concurrent.futures`. A worker that dies takes other jobs with it:
those that were under way then are done again, each alone, so that the one to blame is found.
"""

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from logging import ERROR, getLogger
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from d3s.atomic import make_folder, write_text
from d3s.batch.cluster import Cluster, WorkerEndedError
from d3s.errors import D3SError, InputError, OutputError
from d3s.record import short_repr
from d3s.runtime.allocator import keep_freed_memory
from d3s.runtime.parallel import allowed_cores
from d3s.runtime.versions import code_digest
from d3s.types import Progress

Workers = int | str | None
"""Number of processes, each with one thread; or the address of the scheduler of a Dask cluster.

1 is this process, with as many threads as it has, and None is one process for each core.
"""

_MOST_WORKERS = 1024
_TRIES = 3  # of a job that ends its worker though no other one is under way
_MOST_DEAD_STARTS = 5  # of workers in a row that die before their first job
_LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "D3S")
_THREADS = {f"{one}_THREADS": "1" for one in _LIBRARIES}


class Outcome(NamedTuple):
    """Result of the job of this number, or the error why there is none."""

    number: int
    result: Any
    error: D3SError | None


def checked_workers(workers: Workers, jobs: int | None = None) -> int | str:
    """Return the number of processes, never more than jobs; the address of a scheduler as it is."""
    if isinstance(workers, str):
        return workers
    count = allowed_cores() if workers is None else workers
    if not isinstance(count, int) or not 1 <= count <= _MOST_WORKERS:
        raise InputError(
            f"workers={short_repr(workers)} must be a whole number from 1 to {_MOST_WORKERS}, or "
            "left for one process each core."
        )
    return count if jobs is None else max(1, min(count, jobs))


def run(
    work: Callable[[Any], Any],
    jobs: Iterable[Any],
    workers: Workers = 1,
    *,
    read: Sequence[str] = (),
    written: Sequence[str] = (),
) -> Generator[Outcome, None, None]:
    """Call a function for every job, and yield the outcomes as they come.

    A job that raises, or that ends its worker three times, has an error and stops no other one.
    Jobs are taken as there is room. Closing the generator ends all work at once. For other
    processes, `work` is a function of a module, or a `functools.partial` of one, and a script needs
    `if __name__ == "__main__"`. `read` and `written` are files and folders that all workers of a
    cluster must see, asked before the first job.

    Examples
    --------
    >>> import math
    >>> from d3s.batch.running import run
    >>> [one.result for one in run(math.sqrt, [4, 9])]
    [2.0, 3.0]
    """
    where = checked_workers(workers)
    if where == 1:
        for number, job in enumerate(jobs):
            yield Outcome(number, *_attempt(work, job))
        return
    place = Cluster(where, read, written) if isinstance(where, str) else _Processes(where)
    try:
        yield from _shared(work, jobs, place)
    except BaseException:
        place.end(at_once=True)
        raise
    place.end()


def results(
    work: Callable[[Any], Any],
    jobs: Sequence[Any],
    *,
    workers: Workers = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    read: Sequence[str] = (),
    written: Sequence[str] = (),
) -> list[Any]:
    """Results of all jobs, in their order: worked out now, or kept from before.

    A kept result is a file in `folder`, named by a digest of its job and of all code: the same work
    resumes wherever it was stopped, and results of other work or of another version are never
    taken. Jobs and results are values that JSON can hold; tuples come back as lists. `progress` is
    called with the number of finished jobs, and of all. The error of a job that fails is raised.
    """
    paths = [None if folder is None else kept_path(folder, job) for job in jobs]
    answers = [None if path is None else _kept_text(path) for path in paths]
    pending = [number for number, answer in enumerate(answers) if answer is None]
    finished = len(jobs) - len(pending)
    if progress is not None and finished:
        progress(finished, len(jobs))
    where = checked_workers(workers, len(pending))
    todo = [jobs[number] for number in pending]
    with closing(run(work, todo, where, read=read, written=written)) as outcomes:
        for one in outcomes if todo else ():
            number = pending[one.number]
            if isinstance(one.error, WorkerEndedError) and folder is not None:
                raise WorkerEndedError(
                    f"job {number}: {one.error} {finished} finished results are kept in "
                    f"{Path(folder)}: the same call goes on from there."
                )
            if one.error is not None:
                raise one.error
            answers[number] = answer = json.dumps(one.result)
            if (path := paths[number]) is not None:
                make_folder(path.parent)
                write_text(path, answer, overwrite=True)
            finished += 1
            if progress is not None:
                progress(finished, len(jobs))
    return [json.loads(answer or "") for answer in answers]


def kept_path(folder: str | os.PathLike[str], job: Any) -> Path:
    """File of the kept result of a job."""
    text = f"{code_digest()}\n{json.dumps(job, sort_keys=True)}"
    return Path(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json")


def _kept_text(path: Path) -> str | None:
    """Result of an earlier run; None if there is none, or the file is damaged."""
    try:
        answer = path.read_text()
        json.loads(answer)
    except (OSError, ValueError):
        return None
    return answer


def _attempt(work: Callable[[Any], Any], job: Any) -> tuple[Any, D3SError | None]:
    """Result of a job, or the error why there is none."""
    try:
        return work(job), None
    except D3SError as error:
        return None, error
    except Exception as error:  # noqa: BLE001 - no error may stop other jobs
        return None, _unexpected(error)


def _unexpected(error: BaseException) -> D3SError:
    """Fault of the program, in words and with its traceback as a note."""
    words = f"an error that d3s did not expect: {type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        words = "memory ran out. Try fewer workers."
    told = D3SError(words)
    told.add_note("".join(traceback.format_exception(error)))
    told.__cause__ = error
    return told


# The loop over both places ------------------------------------------------------------------------


def _shared(
    work: Callable[[Any], Any], jobs: Iterable[Any], place: "_Processes | Cluster"
) -> Iterator[Outcome]:
    """Outcomes of all jobs at a place, as they come."""
    waiting: Iterator[tuple[int, Any]] = iter(enumerate(jobs))
    flying: dict[Future[Any], tuple[int, Any]] = {}
    suspects: deque[tuple[int, Any]] = deque()
    deaths: Counter[int] = Counter()

    def submit(number: int, job: Any) -> None:
        flying[place.submit(_attempt_in_worker, work, job)] = number, job

    while True:
        # No job is begun beside suspects, and each of them is done alone.
        while not suspects and len(flying) < place.room and (one := next(waiting, None)):
            submit(*one)
        alone = None
        if not flying:
            if not suspects:
                return
            place.wait_until_ready()
            alone = suspects[0][0]
            submit(*suspects.popleft())
        for future in wait(flying, return_when=FIRST_COMPLETED).done:
            number, job = flying.pop(future)
            try:
                yield Outcome(number, *future.result())
            except CancelledError:  # the scheduler was away
                place.wait_until_ready()
                waiting = chain([(number, job)], waiting)
            except Exception as error:  # noqa: BLE001 - whatever the place could not do
                if not place.has_died(error):
                    yield Outcome(number, None, _unexpected(error))
                    continue
                deaths[number] += number == alone
                if deaths[number] < place.tries:
                    suspects.appendleft((number, job))
                    continue
                yield Outcome(number, None, WorkerEndedError(place.words_of(error)))


class _Processes:
    """Processes of this machine, begun anew when one has died."""

    tries = _TRIES

    def __init__(self, count: int) -> None:
        self.count, self.room = count, 2 * count
        self._pool: Executor | None = None
        self._open: Connection | None = None  # workers end when this end of the pipe is closed

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Hand out a job; a new process begins if none is idle."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            ends, self._open = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.count, context, initializer=_begin, initargs=(ends,)
            )
        try:
            with _for_children():
                return self._pool.submit(work, *arguments)
        except BrokenProcessPool as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken

    def has_died(self, error: Exception) -> bool:
        """Whether a worker has died, which breaks the whole pool."""
        if isinstance(error, BrokenProcessPool):
            self.end(at_once=True)
            return True
        return False

    def words_of(self, error: Exception) -> str:
        """Why a job is given up."""
        return f"its worker process died, {self.tries} times, as when memory runs out."

    def wait_until_ready(self) -> None:
        """Start a worker, so that no job is blamed for a death before it began."""
        for _ in range(_MOST_DEAD_STARTS):
            try:
                self.submit(_one_thread).result()
                return
            except BrokenProcessPool:
                self.end(at_once=True)
        raise WorkerEndedError(
            f"{_MOST_DEAD_STARTS} worker processes in a row died before they began. Their messages "
            'are above. A script that is no module needs `if __name__ == "__main__":` before its '
            "call; --workers 1, workers=1 needs no other process."
        )

    def end(self, *, at_once: bool = False) -> None:
        """End all workers; at once is also in the middle of a job."""
        if self._pool is not None and self._open is not None:
            if at_once:
                self._open.close()
            self._pool.shutdown(cancel_futures=True)
            self._open.close()
            self._pool = None


# The side of a worker -----------------------------------------------------------------------------


@contextmanager
def _for_children() -> Iterator[None]:
    """Context for processes with one thread a library, whose Ctrl-C is for this one alone."""
    before = {name: os.environ.get(name) for name in _THREADS}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(_THREADS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(ends: Connection) -> None:
    """Make this process a worker, which ends at once when the other end of the pipe is closed."""
    os.setsid()  # Ctrl-C is for the caller, which ends its workers
    os.dup2(2, 1)  # what a library prints is no output of the program

    def watch() -> None:
        ends.poll(None)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


@cache
def _one_thread() -> None:
    """Let this process compute with one thread, keep freed memory, and say only what is wrong."""
    os.environ.update(_THREADS)
    keep_freed_memory()
    getLogger("d3s").setLevel(ERROR)  # that loops are compiled, the other process has said
    import cv2

    cv2.setNumThreads(1)


def _attempt_in_worker(work: Callable[[Any], Any], job: Any) -> tuple[Any, D3SError | None]:
    """Outcome of a job whose error, of any class, can go to another process."""
    _one_thread()
    result, error = _attempt(work, job)
    if error is None:
        return result, None
    kind = next((one for one in (OutputError, InputError) if isinstance(error, one)), D3SError)
    told = kind(str(error))
    for note in getattr(error, "__notes__", ()):
        told.add_note(note)
    return None, told
