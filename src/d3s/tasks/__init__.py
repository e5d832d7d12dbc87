"""Many tasks in, their outcomes out as they come: here, in processes, or on a Dask cluster.

A task is a key, a function of a module and a job that JSON can hold; large things go to files.
`run` yields an `Outcome` for every task: done, refused in words, failed, died after so many tries,
or timed out. One bad task stops no other one.

run         `run`: outcomes of tasks at a place; `place_of`: the place that numbers and names mean
task        `Task`, `Outcome` and `Limits`
here        tasks in this process, one after the other
processes   tasks in processes of this machine, which are started again when they die
cluster     tasks on an existing Dask cluster
greeting    questions to a cluster before the first task: versions, digest, threads, folders
node        the side of a Dask worker: one thread, limits, answers
worker      the program of a worker process
names       functions by their names, as JSON
memory      memory of processes and of the machine
kept        results of tasks that are kept on disk and found again
"""

from d3s.tasks.cluster import Cluster
from d3s.tasks.here import Here
from d3s.tasks.kept import results
from d3s.tasks.processes import Processes
from d3s.tasks.run import Where, Workers, place_of, run
from d3s.tasks.task import Job, Kind, Limits, Outcome, Task, WorkerEndedError

__all__ = [
    "Cluster",
    "Here",
    "Job",
    "Kind",
    "Limits",
    "Outcome",
    "Processes",
    "Task",
    "Where",
    "WorkerEndedError",
    "Workers",
    "place_of",
    "results",
    "run",
]
