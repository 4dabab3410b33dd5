"""Paths of a router's routes."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute


def route_paths(router: APIRouter) -> tuple[str, ...]:
    """Return the paths of the routes, in the order in which they were added."""
    return tuple(route.path for route in router.routes if isinstance(route, APIRoute))
