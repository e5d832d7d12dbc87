"""Jobs on a Dask cluster on loopback: the same outcomes, and questions before the first job."""

import time

import pytest

import poison
from d3s.batch import cluster as dask
from d3s.batch.running import WorkerEndedError, run
from d3s.errors import InputError
from loopback import loopback

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask's own threads and sockets


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopback(tmp_path_factory.mktemp("cluster"), 2, "--memory-limit", "3GB") as found:
        yield found


def outcomes(jobs, address, **seen):
    found = {one.number: one.error or one.result for one in run(poison.call, jobs, address, **seen)}
    return [found[number] for number in range(len(jobs))]


def test_outcomes_are_those_of_processes(cluster):
    jobs = [(poison.double, number) for number in range(30)]
    *found, refused, failed = outcomes(
        [*jobs, (poison.refuse, "x"), (poison.fail, 1)], cluster.address
    )
    assert found == [2 * number for number in range(30)]
    assert isinstance(refused, InputError)
    assert str(refused) == "item=x must be there. Look for it."
    assert "ZeroDivisionError: of 1" in str(failed)


@pytest.mark.slow
def test_a_job_that_ends_its_worker_is_found(cluster):
    jobs = [(poison.double, number) for number in range(60)]
    jobs.insert(40, (poison.leave, 3))
    found = outcomes(jobs, cluster.address)
    bad = found.pop(40)
    assert isinstance(bad, WorkerEndedError)
    assert str(bad).startswith("its worker died, 4 times; the last was tcp://127.0.0.1")
    assert found == [2 * number for number in range(60)]


def test_workers_are_asked_for_folders_and_code(cluster, tmp_path, monkeypatch):
    seen = tmp_path / "a.png"
    seen.write_text("x")
    folders = {"read": [str(seen)], "written": [str(tmp_path)]}
    assert outcomes([(poison.double, 1)], cluster.address, **folders) == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]  # and no mark is left
    assert outcomes([(poison.variable, "D3S_THREADS")], cluster.address) == ["1"]
    monkeypatch.setattr(dask, "package_digest", lambda: "other")
    with pytest.raises(dask.ClusterError, match=r"worker tcp://127.* has other files of d3s"):
        outcomes([(poison.double, 1)], cluster.address)
    monkeypatch.setattr(dask, "versions", lambda: {"d3s": "99"})
    with pytest.raises(dask.ClusterError, match=r"has d3s .*, and this is 99\. Workers need the"):
        outcomes([(poison.double, 1)], cluster.address)


class FakeScheduler:
    address = "tcp://10.0.0.1:8786"


class FakeClient:
    """Client of a cluster with one worker, which answers as it is told."""

    scheduler = FakeScheduler()

    def __init__(self, scheduler_version, answer):
        self.scheduler_version = scheduler_version
        self.answer = answer

    def run_on_scheduler(self, function, *arguments):
        return self.scheduler_version

    def wait_for_workers(self, count, timeout):
        if self.answer is None:
            raise TimeoutError

    def run(self, function, *arguments, on_error):
        return {"tcp://w": self.answer}


def told(**changes):
    return {**dask.describe([], []), **changes}


@pytest.mark.parametrize(
    ("version", "answer", "words"),
    [
        (None, None, "the scheduler at tcp://10.0.0.1:8786 has no d3s"),
        ("1", None, "has had no worker for 30 s. Start workers first"),
        ("1", ModuleNotFoundError("x", name="d3s"), "worker tcp://w has no d3s. Workers need"),
        ("1", KeyError("x"), "worker tcp://w cannot answer: KeyError: 'x'"),
        (
            "1",
            told(missing=["/data/a.png"]),
            "worker tcp://w does not see /data/a.png as this machine does",
        ),
        ("1", told(closed=["/out"]), "worker tcp://w may not write to /out"),
        (
            "1",
            told(versions={**dask.versions(), "numpy": "1.0"}),
            "worker tcp://w has numpy 1.0, and this is",
        ),
    ],
)
def test_differences_are_named_with_the_worker(version, answer, words):
    with pytest.raises(dask.ClusterError) as caught:
        dask.greet(FakeClient(version, answer))
    assert words in str(caught.value)


def test_addresses_without_a_scheduler_are_told_in_a_sentence(monkeypatch):
    with pytest.raises(InputError, match="'nonsense://x' is no address of a scheduler"):
        outcomes([], "nonsense://x")
    monkeypatch.setattr(dask, "PATIENCE_S", 1.0)
    started = time.monotonic()
    with pytest.raises(dask.ClusterError, match="there is no Dask scheduler at tcp://127"):
        outcomes([], "tcp://127.0.0.1:9")
    assert time.monotonic() - started < 20


def test_dask_is_an_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the package dask: pip install"):
        outcomes([], "tcp://127.0.0.1:8786")
