"""Metadata of the package that depends on the address of the repository: README and links.

The address is one line of pyproject.toml, `repository` of `[tool.d3s]`. If it is set, links and
pictures of the README point there, and the index shows the links of the project. As long as it is
empty, links within the repository become plain words, so that no link on an index is broken.
"""

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def for_index(readme: str, repository: str) -> str:
    """README whose links hold outside of the repository.

    Parameters
    ----------
    readme
        Markdown with links relative to the root of the repository.
    repository
        Address of the repository, without a slash at its end; empty if it has none yet.
    """

    def link(match: re.Match[str]) -> str:
        is_picture, words, target = match[1] == "!", match[2], match[3]
        if not repository:
            return f"*Picture: {words}.*" if is_picture else words
        kind = "raw" if is_picture else "blob"
        return f"{match[1]}[{words}]({repository}/{kind}/main/{target})"

    return _LINK.sub(link, readme)


def urls(repository: str) -> dict[str, str]:
    """Links of the project on an index; none if it has no address."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/main/docs/index.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def fill_in(metadata: dict[str, Any], root: Path, repository: str) -> None:
    """Set the fields `readme` and `urls` of the metadata.

    Parameters
    ----------
    metadata
        Metadata of the build, changed in place.
    root
        Folder of pyproject.toml.
    repository
        Address of the repository; empty if it has none yet.
    """
    address = repository.rstrip("/")
    text = (root / "README.md").read_text(encoding="utf-8")
    metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, address)}
    metadata["urls"] = urls(address)


try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # not while the package is built
    pass
else:

    class AddressHook(MetadataHookInterface):
        """Hook of Hatchling: see `[tool.hatch.metadata.hooks.custom]`."""

        def update(self, metadata: dict[str, Any]) -> None:
            """Fill in the metadata of the build."""
            import tomllib

            root = Path(self.root)
            settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
            fill_in(metadata, root, settings["tool"]["d3s"]["repository"])
