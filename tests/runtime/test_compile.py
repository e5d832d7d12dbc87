"""The cache of compiled kernels: an edit anywhere in the package takes effect."""

import ast
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

import d3s
from d3s.runtime import compile as compiling

SOURCE = Path(d3s.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
)

# A kernel in the copy, its constant imported through a second module.
PACKAGE = {
    "numbers_a.py": "FACTOR = 2\n",
    "numbers_b.py": "from d3s.numbers_a import (\n    FACTOR,  # of the kernel\n)\n",
    "kernel.py": """
import numpy as np
from d3s.numbers_b import FACTOR
from d3s.runtime.compile import compiled

@compiled
def scaled(value):
    return FACTOR * value
""",
}
CALL = """
from d3s.kernel import scaled
result = scaled(21)
stats = scaled.stats
print(result, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package's runtime, with a kernel in it."""
    root = tmp_path / "d3s"
    shutil.copytree(SOURCE / "runtime", root / "runtime", ignore=shutil.ignore_patterns("__pyc*"))
    for name in ("__init__.py", "version.py", "errors.py", "types.py"):
        shutil.copy(SOURCE / name, root / name)
    for name, text in PACKAGE.items():
        (root / name).write_text(text)
    return root


def _call(root: Path) -> list[int]:
    environment = {**os.environ, "PYTHONPATH": str(root.parent)}
    command = [sys.executable, "-c", CALL]
    done = subprocess.run(
        command, env=environment, cwd=root.parent, capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_a_constant_imported_by_a_kernel_takes_effect_when_edited(copy):
    assert _call(copy) == [42, 0, 1]
    assert _call(copy) == [42, 1, 0]  # kept
    (copy / "numbers_a.py").write_text("FACTOR = 3\n")
    assert _call(copy) == [63, 0, 1]
    assert _call(copy) == [63, 1, 0]


def test_it_says_how_far_the_compilation_is(copy):
    call = "from d3s.runtime import compile; compile._TELL_S = 0.0\n" + CALL
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    command = [sys.executable, "-c", call]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "has compiled 1 loops of 1 that may be needed." in done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_imports_are_found_as_python_finds_them(module):
    """The quick scan of a source text against Python's own parser."""
    file = compiling.source_file(module)
    expected = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            expected |= {alias.name for alias in node.names if alias.name.startswith("d3s")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("d3s"):
            expected |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    assert expected <= set(compiling._imports(module))


def test_borrowed_arrays_stay_with_their_owner():
    """Arrays taken out of a tuple without counting references are neither freed nor kept."""

    class Pair(NamedTuple):
        one: np.ndarray
        other: np.ndarray

    @compiling.borrowing
    def product(pair, place):
        one, other = pair.one, pair.other
        return one[place] * other[place]

    @compiling.compiled
    def total(pair):
        found = 0.0
        for place in range(pair.one.size):
            found += product(pair, place)
        return found

    pair = Pair(np.arange(5.0), np.full(5, 2.0))
    before = [sys.getrefcount(one) for one in pair]
    assert [total(pair) for _ in range(100)] == [20.0] * 100
    assert [sys.getrefcount(one) for one in pair] == before
    assert pair.one.tolist() == [0, 1, 2, 3, 4]


def test_every_kernel_has_the_key_of_its_module():
    from d3s.estimate.joint.kernels import windows

    stamp = windows._fit_windows._cache._own._cache_file._source_stamp
    assert stamp == compiling.cache_key(windows.__name__)


def test_lowest_versions_are_the_lower_bounds():
    """`make test-lowest` tests what pyproject.toml promises."""
    root = Path(__file__).parents[2]
    promised = dict(re.findall(r'"([\w-]+)>=([\w.]+)', (root / "pyproject.toml").read_text()))
    lowest = dict(
        re.findall(r"^([\w-]+)==([\w.]+)$", (root / "constraints-lowest.txt").read_text(), re.M)
    )
    assert lowest.keys() >= {"numba", "llvmlite", "numpy"}
    for name, version in lowest.items():
        assert (version + ".").startswith(promised[name] + "."), name


def test_compiler_is_loaded_by_one_thread_at_a_time():
    with ThreadPoolExecutor(1) as pool:
        with global_compiler_lock:
            loading = pool.submit(compiling.load_compiler)
            with pytest.raises(TimeoutError):
                loading.result(timeout=0.2)
        loading.result()
