"""Clients of the API in a process of their own, each on its own connection: ``python -m tests.bench.clients PORT WHAT SECONDS PACE``.

With a ``PACE`` each client asks so many times a second, whether its last answer has come or not: an answer's time counts from when its
question was due, so that what waits is not left out. With a pace of 0 each asks again as soon as it has its answer. Prints the times in
milliseconds, and how long it took, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from dataclasses import dataclass, field

from tests.bench.lake import ASKS

CLIENTS = 16


@dataclass
class _Client:
    number: int
    port: int
    what: str
    pace: float
    took: list[float] = field(default_factory=list)

    async def ask(self, started_at: float, seconds: float) -> None:
        """Asks from ``started_at`` (the loop's clock) on, for so many seconds."""
        clock, chosen = asyncio.get_running_loop().time, random.Random(f"{self.number} {seconds}")
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        # Clients do not ask all at the same moment.
        due = started_at + self.number / CLIENTS / self.pace if self.pace else started_at
        await asyncio.sleep(due - clock())
        while due < started_at + seconds:
            writer.write(f"GET {ASKS[self.what](chosen)} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            await _answer(reader)
            self.took.append((clock() - due) * 1000)
            due = due + 1 / self.pace if self.pace else clock()
            if due > clock():
                await asyncio.sleep(due - clock())
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    assert head.startswith(b"http/1.1 200"), body


async def _run(port: int, what: str, seconds: float, pace: float) -> dict[str, object]:
    clients = [_Client(number, port, what, pace) for number in range(CLIENTS)]
    clock = asyncio.get_running_loop().time
    began = clock() + 0.5
    await asyncio.gather(*(client.ask(began, seconds) for client in clients))
    return {"took": [each for client in clients for each in client.took], "seconds": clock() - began}


if __name__ == "__main__":
    _, port, what, seconds, pace = sys.argv
    print(json.dumps(asyncio.run(_run(int(port), what, float(seconds), float(pace)))))
