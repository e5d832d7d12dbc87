"""What can go wrong, by kind. Everything the library raises on purpose is a `D3SError`."""


class D3SError(Exception):
    """Base of all errors that D3S raises on purpose; its text is meant for the user."""


class RigError(D3SError, ValueError):
    """A rig, or a rig file, that cannot be right: every wrong field is named in the text."""


class OutputError(D3SError, OSError):
    """A result that could not be written, or that would have replaced a file of the user's."""
