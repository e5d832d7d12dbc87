"""Progress of a whole calibration from that of its steps."""

from collections.abc import Mapping

from d3s.types import Progress

# Percent of the whole time that each step takes, as measured on 50 frames of 3840 x 2160 px.
PERCENT = {
    "reading": 8,
    "fields": 2,
    "matches": 25,
    "noise": 2,
    "defocus": 5,
    "focus": 6,
    "disparity": 6,
    "tuning": 5,
    "baselines": 6,
}
PERCENT_OF_TEST = {
    "matches": 10,
    "defocus": 3,
    "focus": 3,
    "disparity": 3,
    "tuning": 3,
    "baselines": 3,
    "joint": 5,
    "consensus": 5,
}


class Percent:
    """Percent of the whole calibration that is done, from the progress of single steps."""

    def __init__(
        self, progress: Progress | None, shares: Mapping[str, float], start: float = 0.0
    ) -> None:
        self._progress = progress
        self._shares = shares
        self._start = start

    def of(self, step: str) -> Progress | None:
        """Progress function to pass to a step."""
        report = self._progress
        if report is None:
            return None
        names = list(self._shares)
        start = self._start + sum(self._shares[name] for name in names[: names.index(step)])
        share = self._shares[step]
        return lambda done, total: report(round(start + share * done / max(total, 1)), 100)

    def finish(self, step: str) -> None:
        """Report a step as done that reports no progress itself."""
        progress = self.of(step)
        if progress is not None:
            progress(1, 1)
