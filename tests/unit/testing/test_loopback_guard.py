"""The guard of the test session refuses what leaves this machine, without a packet, and names the test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.guarded import loopback_guard
from tests.fixtures.network import METADATA_SERVICE

#: an address of loopback that stands for the outside, so that a listener shows whether anything was sent
OUTSIDE = "127.66.0.1"
TESTS = """
import asyncio, contextlib, socket, subprocess, sys
import pytest

TCP, UDP = ("{outside}", {tcp}), ("{outside}", {udp})

def test_connects():
    socket.create_connection(TCP, timeout=1)

def test_connects_and_ignores_the_error():
    with contextlib.suppress(OSError):
        socket.create_connection(TCP, timeout=1)

def test_connects_asynchronously():
    with contextlib.suppress(OSError):
        asyncio.run(asyncio.open_connection(*TCP))

def test_sends_a_datagram():
    with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", UDP)

def test_looks_up_a_name():
    with contextlib.suppress(OSError):
        socket.getaddrinfo("somebody.example.com", 443)

def test_connects_to_a_name():
    with contextlib.suppress(OSError), socket.socket() as connection:
        connection.connect(("another.example.com", 443))

def test_starts_a_child_that_connects():
    code = "import socket; socket.create_connection(%r)" % (TCP,)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 1

@pytest.fixture
def outside():
    with contextlib.suppress(OSError):
        socket.create_connection(TCP, timeout=1)

def test_has_a_fixture_that_connects(outside):
    pass

def test_stays_inside(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / "s"))
    socket.getaddrinfo(socket.gethostname(), 0)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("nobody.invalid", 0)
    path = subprocess.run([sys.executable, "-c", "import sys; print(*sys.path)"], capture_output=True, text=True).stdout
    assert "guarded" in path
"""


def test_native_code_of_tests_and_their_children_looks_for_credentials_on_loopback() -> None:
    """``test_opening.py`` shows that Lance's store asks where these variables point."""
    code = f"import os; print(*(os.environ[name] for name in {list(METADATA_SERVICE)}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    addresses = ran.stdout.split()
    assert len(addresses) == len(METADATA_SERVICE)
    assert all(address.removeprefix("http://").startswith("127.0.0.1:") for address in addresses)


def _run(directory: Path, *plugins: str) -> str:
    environment = {**os.environ, loopback_guard.OUTSIDE: OUTSIDE}
    command = [sys.executable, "-m", "pytest", "-q", "-rfEp", "-c", os.devnull, "-p", "no:cacheprovider", *plugins]
    ran = subprocess.run(
        [*command, "test_inner.py"], cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    return ran.stdout + ran.stderr


def test_what_leaves_this_machine_is_refused_and_fails_its_test(tmp_path: Path) -> None:
    with socket.create_server((OUTSIDE, 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind((OUTSIDE, 0))
        tcp.setblocking(False)
        udp.setblocking(False)
        text = TESTS.replace("{outside}", OUTSIDE).replace("{tcp}", str(tcp.getsockname()[1]))
        text = text.replace("{udp}", str(udp.getsockname()[1]))
        (tmp_path / "test_inner.py").write_text(text, encoding="utf-8")
        printed = _run(tmp_path, "-p", "tests.fixtures.network")
        summary = [line.split() for line in printed.splitlines() if line.startswith(("FAILED ", "ERROR ", "PASSED "))]
        names = {line.split("(")[0].removeprefix("def ") for line in text.splitlines() if line.startswith("def test_")}
        refused = {words[1].partition("::")[2] for words in summary if words[0] != "PASSED"}
        assert refused == names - {"test_stays_inside"}, printed
        assert ["PASSED", "test_inner.py::test_stays_inside"] in summary, printed
        child = "test_inner.py::test_starts_a_child_that_connects: connect to 127.66.0.1"
        for shown in (child, "lookup of somebody.example.com", "lookup of another.example.com"):
            assert shown in printed
        with pytest.raises(BlockingIOError):
            tcp.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)
        # The listeners do hear what is sent.
        with socket.socket(type=socket.SOCK_DGRAM) as sender, socket.create_connection(tcp.getsockname()):
            sender.sendto(b"x", udp.getsockname())
            udp.setblocking(True)
            assert udp.recv(1) == b"x"
            tcp.setblocking(True)
            tcp.accept()[0].close()
