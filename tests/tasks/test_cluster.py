"""Tasks on a Dask cluster on loopback: the same outcomes, and questions before the first task."""

import time

import pytest

import poison
from d3s.errors import InputError
from d3s.tasks import Cluster, OutcomeKind, Task, run, worker
from d3s.tasks import cluster as dask
from loopback import loopback

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask's own threads and sockets


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopback(tmp_path_factory.mktemp("cluster"), 2, "--memory-limit", "3GB") as found:
        yield found


def outcomes(tasks, where):
    return {one.key: one for one in run(tasks, where)}


def test_outcomes_are_those_of_processes(cluster):
    tasks = [Task(str(number), poison.double, number) for number in range(30)]
    bad = [Task("refused", poison.refuse, "x"), Task("failed", poison.fail, 1)]
    found = outcomes([*tasks, *bad], Cluster(cluster.address))
    assert all(found[one.key].result == 2 * one.job for one in tasks)
    told = {one.key: (found[one.key].kind, found[one.key].reason) for one in bad}
    assert told["refused"] == (OutcomeKind.REFUSED, "item=x must be there. Look for it.")
    assert told["failed"][0] == OutcomeKind.FAILED


@pytest.mark.slow
def test_short_tasks_go_together_and_stop_no_other(cluster):
    """One that ends its worker without a word takes its group with it; the others are done."""
    tasks = [Task(str(number), poison.double, number) for number in range(60)]
    tasks.insert(40, Task("leaves", poison.leave, 3))
    found = outcomes(tasks, Cluster(cluster.address))
    bad = found.pop("leaves")
    assert bad.kind == OutcomeKind.DIED
    assert bad.reason.startswith("its worker died, 8 times; the last was tcp://127.0.0.1")
    assert {key: one.result for key, one in found.items()} == {
        str(number): 2 * number for number in range(60)
    }


def test_workers_are_asked_for_folders_and_code(cluster, tmp_path, monkeypatch):
    seen = tmp_path / "a.png"
    seen.write_text("x")
    where = Cluster(cluster.address).seeing([str(seen)], [str(tmp_path)])
    assert outcomes([Task("a", poison.double, 1)], where)["a"].result == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]  # and no mark is left
    threads = outcomes([Task("a", poison.variable, "D3S_THREADS")], where)
    assert threads["a"].result == "1"
    monkeypatch.setattr(dask, "package_digest", lambda: "other")
    with pytest.raises(dask.ClusterError, match=r"worker tcp://127.* has other files of d3s"):
        outcomes([Task("a", poison.double, 1)], where)
    monkeypatch.setattr(dask, "versions", lambda: {"d3s": "99"})
    with pytest.raises(dask.ClusterError, match=r"has d3s .*, and this is 99\. Install"):
        outcomes([Task("a", poison.double, 1)], where)


class FakeScheduler:
    address = "tcp://10.0.0.1:8786"


class FakeClient:
    """Client of a cluster whose workers answer as they are told."""

    scheduler = FakeScheduler()

    def __init__(self, scheduler_version, answers):
        self.scheduler_version = scheduler_version
        self.answers = list(answers)

    def run_on_scheduler(self, function, *arguments):
        return self.scheduler_version

    def wait_for_workers(self, count, timeout):
        if not self.answers:
            raise TimeoutError

    def run(self, function, *arguments, on_error):
        return self.answers.pop(0)


def told(**changes):
    return {**worker.describe([], []), **changes}


@pytest.mark.parametrize(
    ("version", "answers", "words"),
    [
        (None, [], "the scheduler at tcp://10.0.0.1:8786 has no d3s"),
        ("1", [], "has had no worker for 30 s. Start workers first"),
        ("1", [{"tcp://w": None}], "worker tcp://w has no d3s. Install"),
        ("1", [{"tcp://w": KeyError("x")}], "worker tcp://w cannot answer: KeyError: 'x'"),
        (
            "1",
            [{"tcp://w": dask.versions()["d3s"]}, {"tcp://w": told(missing=["/data/a.png"])}],
            "worker tcp://w does not see /data/a.png as this machine does",
        ),
        (
            "1",
            [{"tcp://w": dask.versions()["d3s"]}, {"tcp://w": told(closed=["/out"])}],
            "worker tcp://w may not write to /out",
        ),
        (
            "1",
            [
                {"tcp://w": dask.versions()["d3s"]},
                {"tcp://w": told(versions={**dask.versions(), "numpy": "1.0"})},
            ],
            "worker tcp://w has numpy 1.0, and this is",
        ),
    ],
)
def test_differences_are_named_with_the_worker(version, answers, words):
    with pytest.raises(dask.ClusterError) as caught:
        dask.greet(FakeClient(version, answers))
    assert words in str(caught.value)


def test_addresses_without_a_scheduler_are_told_in_a_sentence():
    with pytest.raises(InputError, match="'nonsense://x' is no address of a scheduler"):
        outcomes([], Cluster("nonsense://x"))
    started = time.monotonic()
    with pytest.raises(dask.ClusterError, match="there is no Dask scheduler at tcp://127"):
        outcomes([], Cluster("tcp://127.0.0.1:9", patience_s=1))
    assert time.monotonic() - started < 20


def test_dask_is_an_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install .*\[dask\]'"):
        outcomes([], Cluster("tcp://127.0.0.1:8786"))
