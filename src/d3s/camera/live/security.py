"""Checks of every request: the token in the address, Host, and Origin.

A page of another site must not read what the camera sees. It does not know the token; its requests
carry its own Origin; and if it renames itself to this machine (DNS rebinding), they carry its name
in Host. Each check alone refuses it.
"""

import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
"""Address of this machine that no other machine can reach."""

MAX_MESSAGE_BYTES = 16_384
"""Largest message that a client can send."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer: nothing is cached, framed, or loaded from elsewhere."""

DOCUMENT_HEADERS = HEADERS | {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    )
}
"""Headers of a document that has its styles and pictures in itself, and no scripts."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Rule that decides whether a request is answered.

    Parameters
    ----------
    host
        Address that the server listens at; 0.0.0.0 and :: are all addresses of this machine.
    port
        Its port.
    token
        Secret part of the address.
    """

    host: str
    port: int
    token: str = field(default_factory=partial(secrets.token_urlsafe, 18), repr=False)

    @property
    def address(self) -> str:
        """Address to open in a browser, with the token."""
        name = socket.gethostname() if is_wildcard(self.host) else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/{self.token}/"

    def refusal(self, *, token: str, host: str | None, origin: str | None, is_socket: bool) -> str:
        """Reason why a request is refused; empty if it is not."""
        if not self._is_own_host(host):
            return "the Host of the request is not this server."
        if origin is None and is_socket:
            return "a WebSocket needs an Origin."
        if origin is not None and origin.lower() != f"http://{host}".lower():
            return "the request comes from a page of another Origin."
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "the token is missing or wrong. Open the address that d3s printed."
        return ""

    def _is_own_host(self, host: str | None) -> bool:
        """Whether Host names this server: a foreign name that leads here is refused."""
        if not host:
            return False
        try:
            parts = urlsplit(f"//{host}")
            name, port = (parts.hostname or "").lower(), parts.port or 80
        except ValueError:
            return False
        if port != self.port or parts.username is not None or parts.path:
            return False
        if is_wildcard(self.host):
            return _is_ip(name) or name in ("localhost", socket.gethostname().lower())
        return name == self.host.lower() or (
            is_loopback(self.host) and name in (LOOPBACK, "localhost")
        )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def is_wildcard(host: str) -> bool:
    """Whether an address stands for all addresses of this machine."""
    return _is_ip(host) and ipaddress.ip_address(host).is_unspecified


def warning_of(host: str) -> str:
    """Sentence on what it means to listen at this address; empty for this machine only."""
    if is_loopback(host):
        return ""
    everywhere = "every network that this machine is in"
    where = everywhere if is_wildcard(host) else f"the network of {host}"
    return (
        f"the page can be reached from {where}, without encryption: everybody who has the address "
        "with its token sees the pictures and changes settings, and everybody on the way can read "
        "the token."
    )


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
