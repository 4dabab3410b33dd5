"""The demo serves its page also while another process has the usual port."""

from __future__ import annotations

import socket

from federator.demo.story import choose_port


def test_a_taken_port_is_replaced_by_any_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        assert choose_port("127.0.0.1", taken) == 0
    assert choose_port("127.0.0.1", taken) == taken
