"""The rule of the gate alone, for every kind of address."""

import socket

import pytest

from d3s.camera.live.server import Gate, Page, Server
from d3s.errors import InputError

TOKEN = "t" * 24


def refusal(gate, *, token=TOKEN, host, origin=None, is_socket=False) -> str:
    return gate.refusal(token=token, host=host, origin=origin, is_socket=is_socket)


@pytest.mark.parametrize(
    ("listens", "host", "is_own"),
    [
        ("127.0.0.1", "127.0.0.1:8000", True),
        ("127.0.0.1", "localhost:8000", True),
        ("127.0.0.1", "127.0.0.1", False),  # another port
        ("127.0.0.1", "192.168.0.7:8000", False),
        ("127.0.0.1", "evil.example:8000", False),
        ("127.0.0.1", None, False),
        ("::1", "[::1]:8000", True),
        ("192.168.0.7", "192.168.0.7:8000", True),
        ("192.168.0.7", "localhost:8000", False),
        ("0.0.0.0", "192.168.0.7:8000", True),
        ("0.0.0.0", f"{socket.gethostname()}:8000", True),
        ("0.0.0.0", "evil.example:8000", False),  # a name that was made to lead here
    ],
)
def test_own_hosts(listens, host, is_own):
    gate = Gate(host=listens, port=8000, token=TOKEN)
    assert (refusal(gate, host=host) == "") is is_own


@pytest.mark.parametrize(
    ("origin", "is_socket", "is_own"),
    [
        (None, False, True),
        (None, True, False),
        ("http://127.0.0.1:8000", True, True),
        ("http://127.0.0.1:8001", True, False),
        ("https://127.0.0.1:8000", True, False),
        ("http://localhost:8000", True, False),  # not the Host of this request
        ("null", False, False),
        ("", False, False),
    ],
)
def test_own_origins(origin, is_socket, is_own):
    gate = Gate(host="127.0.0.1", port=8000, token=TOKEN)
    found = refusal(gate, host="127.0.0.1:8000", origin=origin, is_socket=is_socket)
    assert (found == "") is is_own


def test_tokens_are_long_and_differ():
    gates = [Gate(host="127.0.0.1", port=8000) for _ in range(50)]
    assert len({gate.token for gate in gates}) == 50
    assert min(len(gate.token) for gate in gates) >= 24
    assert gates[0].token not in repr(gates[0])
    for wrong in ("", TOKEN[:-1], TOKEN + "t", gates[1].token):
        assert "token" in refusal(gates[0], token=wrong, host="127.0.0.1:8000")
    assert gates[0].address == f"http://127.0.0.1:8000/{gates[0].token}/"
    assert Gate(host="::1", port=9, token=TOKEN).address == f"http://[::1]:9/{TOKEN}/"


def test_port_in_use_is_told():
    page = Page(name="page", title="Page")
    with Server([page]).running():
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = Server([page], port=taken.getsockname()[1])
        with pytest.raises(InputError, match="--port"), server.running():
            pass
