"""Many tasks in, their outcomes out as they come: here, in processes, or on a Dask cluster.

A task is a key, a function of a module and a job that JSON can hold; large things go to files.
`run` yields an `Outcome` for every task: done, refused in words, failed, or died after so many
tries. One bad task stops no other one.

task        `Task` and `Outcome`; functions by their names, as JSON
running     `run`: outcomes of tasks at a place; `results`: kept on disk and found again
processes   tasks in processes of this machine, which are started again when they die
cluster     tasks on an existing Dask cluster, which is asked for versions and folders first
worker      the side of a worker process, and of a worker of a cluster
"""

from d3s.tasks.cluster import Cluster
from d3s.tasks.processes import Processes
from d3s.tasks.running import Here, Where, Workers, place_of, results, run
from d3s.tasks.task import Job, Outcome, OutcomeKind, Task, WorkerEndedError

__all__ = [
    "Cluster",
    "Here",
    "Job",
    "Outcome",
    "OutcomeKind",
    "Processes",
    "Task",
    "Where",
    "WorkerEndedError",
    "Workers",
    "place_of",
    "results",
    "run",
]
