"""A network namespace that has only loopback: native code of other projects cannot contact anything else."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import sys

_CONFINED = "INTEROP_CONFINED"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def is_confined() -> bool:
    """Return whether this process was started by ``confine``."""
    return _CONFINED in os.environ


def confine(module: str, arguments: list[str]) -> None:
    """Repeat the module's command in a network namespace with loopback only; return inside it. Exit if there cannot be one."""
    if is_confined():
        _raise_loopback()
        return
    unshare = shutil.which("unshare")
    if unshare is None:
        sys.exit("unshare (util-linux) is needed: other projects' clients run in a network namespace with loopback only")
    as_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = [unshare, "--net", *as_user, sys.executable, "-m", module, *arguments]
    os.execve(unshare, command, {**os.environ, _CONFINED: "1"})


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        name, flags, rest = struct.unpack("16sH14s", fcntl.ioctl(handle, _GET_FLAGS, request))
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH14s", name, flags | _UP, rest))
