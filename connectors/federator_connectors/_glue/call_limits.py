"""Enforcement of ``limit.*`` for boto3 clients.

Each attempt of each client waits for the rate limit, also botocore's own retries. The circuit breaker counts calls, not attempts: a
call fails only after botocore's last retry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any

from botocore import exceptions as boto

from federator.connector import CallLimits
from federator.connector.call_deadline import CallDeadline, CallSlots, call_seconds
from federator.connector.call_policy import CircuitBreaker, RateLimiter
from federator_connectors._glue.errors import describe_connection, describe_response
from federator_connectors._http.watched_connections import watched_pool_class

_SERVER_ERROR = 500
#: the key of what a call holds, in botocore's context of the call
_HELD = "federator.held"
#: the key of a call's deadline
_DEADLINE = "federator.deadline"


@cache
def shared_call_limiter(source: str, server: str, limits: CallLimits) -> CallLimiter:
    """Return the process-wide limiter of a source's server; all opened catalogs of the source share it."""
    return CallLimiter(f"{source}: {server}", limits)


class CallLimiter:
    """Limits of one source. Thread-safe."""

    def __init__(self, server: str, limits: CallLimits) -> None:
        self._rate = RateLimiter(limits.requests_per_second, time.monotonic, time.sleep)
        self._slots = CallSlots(limits.concurrency)
        self._breaker = CircuitBreaker(server, limits, time.monotonic)

    def attach(self, client: Any, connections: CallSlots, before_send: Callable[[], None] = lambda: None) -> None:
        """Apply the limits to a boto3 client, with the events that botocore emits around each call and before each attempt.

        A call takes one of ``connections`` until its response. ``before_send`` is called immediately before each attempt is sent; if
        it raises, the attempt is not sent.
        """
        events = client.meta.events
        events.register("before-send", lambda **_: self._wait_to_send(before_send))
        events.register("before-call", lambda context, **_: self._begin(context, connections))
        # Exactly one of the next two events follows each call that has started.
        events.register(
            "after-call",
            lambda context, http_response, parsed, **_: self._record_response(context, http_response.status_code, parsed),
        )
        events.register("after-call-error", lambda context, exception, **_: self._record_error(context, exception))

    # The handlers return None: botocore would use any other value as the response of the service.

    def _wait_to_send(self, before_send: Callable[[], None]) -> None:
        self._rate.wait()
        before_send()

    def _begin(self, context: dict[str, Any], connections: CallSlots) -> None:
        with ExitStack() as held:
            held.enter_context(connections)
            held.enter_context(self._slots)
            # Waiting comes first: by then, the service may not have served the calls before, so that this one is not made.
            self._breaker.before_call()
            context[_HELD] = held.pop_all()

    def _record_response(self, context: dict[str, Any], status: int, parsed: Mapping[str, Any]) -> None:
        _release(context)
        if status >= _SERVER_ERROR:
            self._breaker.record_failure(describe_response(parsed, status))
        else:
            self._breaker.record_success()

    def _record_error(self, context: dict[str, Any], error: Exception) -> None:
        _release(context)
        # Any other error does not show that the server is down: STS may have raised it before the request was sent.
        if isinstance(error, boto.ConnectionError | boto.HTTPClientError):
            self._breaker.record_failure(describe_connection(error))


def limit_duration(server: str, client: Any, config: Any) -> None:
    """End each call of a boto3 client at its deadline, with all its attempts. ``server`` starts the message.

    The deadline begins after the handlers of ``CallLimiter``, which may wait, and ends after those that release what they hold.
    """
    is_write = config.retries["total_max_attempts"] == 1

    def begin(context: dict[str, Any], **_: Any) -> None:
        seconds = call_seconds(config.connect_timeout, config.read_timeout, writes=is_write)
        context[_DEADLINE] = CallDeadline(server, seconds).__enter__()

    def end(context: dict[str, Any], exception: Exception | None = None, **_: Any) -> None:
        if deadline := context.pop(_DEADLINE, None):
            deadline.__exit__(None, exception, None)

    for event, handler in (("before-call", begin), ("after-call", end), ("after-call-error", end)):
        client.meta.events.register_last(event, handler)
    # botocore has no way to choose the class of its connections.
    session = client._endpoint.http_session
    session._pool_classes_by_scheme = {
        scheme: watched_pool_class(pool) for scheme, pool in session._pool_classes_by_scheme.items()
    }
    session._manager.pool_classes_by_scheme = session._pool_classes_by_scheme


def _release(context: dict[str, Any]) -> None:
    # A stub that answers instead of the service may do so before the call began here.
    if held := context.pop(_HELD, None):
        held.close()
