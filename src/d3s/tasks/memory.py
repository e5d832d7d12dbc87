"""Memory of processes and of the machine, in bytes."""

import os
import re
import subprocess
from pathlib import Path

_PROC = Path("/proc")
_KERNEL = _PROC / "vmstat"
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def process_bytes(process: int) -> int:
    """Memory that a process holds; 0 if it is not there any more."""
    if _PROC.is_dir():
        try:
            pages = int((_PROC / str(process) / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")
    told = subprocess.run(  # macOS
        ["ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return 1024 * int(told.stdout) if told.stdout.strip().isdecimal() else 0


def machine_bytes() -> int:
    """Memory of this machine, or of the container that this process is in."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(whole, int(_CGROUP.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return whole


def memory_kills() -> int | None:
    """Processes that the kernel has killed since memory ran out; None if it does not say."""
    try:
        found = re.search(r"^oom_kill (\d+)$", _KERNEL.read_text(), re.MULTILINE)
    except OSError:  # not Linux
        return None
    return None if found is None else int(found[1])


def in_words(size_bytes: float) -> str:
    """Size with two digits, in MB or GB."""
    unit, name = (1e9, "GB") if size_bytes >= 1e9 else (1e6, "MB")
    return (
        f"{size_bytes / unit:.2g} {name}"
        if size_bytes < 100 * unit
        else (f"{size_bytes / unit:.0f} {name}")
    )
