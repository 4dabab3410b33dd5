"""A client of the service's own API ``/api/v1``, for notebooks and integrations: ``Client``, and ``AsyncClient`` with the same methods.

Needs the extra ``client``. Errors are ``ClientError``. Lists are complete, unless a method has a ``limit``.
"""

from federator.client.asynchronous import AsyncClient
from federator.client.errors import ApiError, ClientError, RunNotStarted, ServiceUnreachable, WaitTimeout
from federator.client.synchronous import Client

__all__ = ["ApiError", "AsyncClient", "Client", "ClientError", "RunNotStarted", "ServiceUnreachable", "WaitTimeout"]
