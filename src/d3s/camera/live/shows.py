"""Protocol of what a page can show: a pipeline, or saved files."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from d3s.camera.live.results import Result
from d3s.camera.live.settings import Settings
from d3s.camera.live.slot import Newest


class Show(Protocol):
    """Results that change with time, with settings and actions: what a `Feed` serves to pages."""

    @property
    def results(self) -> Newest[Result]:
        """Newest result."""

    @property
    def settings(self) -> Settings:
        """Settings as they are now."""

    @property
    def title(self) -> str:
        """Name for the top of the page."""

    @property
    def panels(self) -> Collection[str]:
        """Panels that there are, keys of `d3s.camera.live.pictures.PANELS`."""

    @property
    def is_live(self) -> bool:
        """Whether results come by themselves, so that an old one is worth a warning."""

    def abilities(self) -> dict[str, Any]:
        """Controls that the page offers: record, snapshot, points, estimate, camera, positions."""

    def status(self) -> dict[str, Any]:
        """State in words, rates and counters, for the page."""

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings."""

    def act(self, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a control asks for: "record" or "seek"; return values to show."""

    def save(self, result: Result) -> dict[str, Any]:
        """Write the depth map that a page shows; return `text` to show."""
