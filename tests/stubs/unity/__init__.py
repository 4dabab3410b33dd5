"""A server that keeps state and answers as Unity Catalog OSS 0.6.0 was recorded to (``tests/recordings/unity``)."""

from tests.stubs.unity.server import UnityStub
from tests.stubs.unity.world import World

__all__ = ["UnityStub", "World"]
