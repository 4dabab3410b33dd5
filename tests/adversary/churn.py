"""Churn at an origin and meddling at its target, in a thread of their own, seeded, and written down in books."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.adversary.books import Book
from tests.adversary.clients import Client, Vanished


@dataclass
class Churn:
    """Two to four things a second: an origin's tables come, go, are renamed, moved and made again; at the target somebody drops,
    moves, unmarks and replaces their copies. ``location`` is where tables are declared to be."""

    origin: Client
    target: Client
    location: str
    seed: int
    size: int = 40
    book: Book = field(default_factory=Book)
    people: Book = field(default_factory=Book)
    done: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._ending = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="churn")
        self.origin.create_database()
        for _ in range(self.size):
            self.create()

    def __enter__(self) -> Self:
        self._run = self._pool.submit(self._go_on)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ending.set()
        self._pool.shutdown()
        if kind is None:
            self._run.result()

    def _go_on(self) -> None:
        while not self._ending.wait(self._random.uniform(0.25, 0.5)):
            self.step()

    def step(self) -> None:
        """One thing, at either end."""
        few, many = len(self.book.locations) < self.size // 2, len(self.book.locations) > self.size * 3 // 2
        names = ["create"] if few else ["drop"] if many else ["create", "drop", "rename", "move", "again"]
        name = self._random.choice([*names, *names, "their_drop", "their_move", "unmark", "replace", "give_back"])
        with suppress(Vanished):
            getattr(self, name)()
            self.done[name] = self.done.get(name, 0) + 1

    # At the origin.

    def create(self) -> None:
        name = f"t{self._count}"
        self._count += 1
        self.origin.create(name, location := f"{self.location}/{name}")
        self.book.created(name, location)

    def drop(self) -> None:
        self.book.removing(name := self._name())
        self.origin.drop(name)

    def rename(self) -> None:
        location, new = self.book.removing(name := self._name()), f"r{self._count}"
        self._count += 1
        self.origin.rename(name, new)
        self.book.created(new, location)

    def move(self) -> None:
        # The table itself stays: the book goes on.
        self.origin.move(name := self._name(), location := f"{self.location}/{name}_{self._count}")
        self._count += 1
        self.book.locations[name] = location

    def again(self) -> None:
        self.book.removing(name := self._name())
        self.origin.drop(name)
        self._ending.wait(self._random.uniform(0, 3))
        self.origin.create(name, location := f"{self.location}/{name}_{self._count}")
        self._count += 1
        self.book.created(name, location)

    # At the target.

    def their_drop(self) -> None:
        self.target.drop(self._copy())

    def their_move(self) -> None:
        self.target.move(name := self._copy(), f"{self.location}/elsewhere/{name}")

    def unmark(self) -> None:
        self.target.unmark(name := self._copy())
        self.people.created(name, "")

    def replace(self) -> None:
        self.target.drop(name := self._copy())
        self.target.create(name, location := f"{self.location}/theirs/{name}")
        self.people.created(name, location)

    def give_back(self) -> None:
        if not self.people.locations:
            raise Vanished
        self.people.removing(name := self._random.choice(sorted(self.people.locations)))
        self.target.drop(name)

    def _name(self) -> str:
        return self._random.choice(sorted(self.book.locations))

    def _copy(self) -> str:
        """The name of a table at the origin that people have not made their own at the target."""
        return self._random.choice(sorted(set(self.book.locations) - set(self.people.locations)))
