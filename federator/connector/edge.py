"""The outermost edge of a connector: whatever else it raises, its callers get a FederatorError.

Each connector maps its native client's errors itself, in one place. What passes that place is a mistake of the connector's own; here it
becomes ``Internal`` (18), so that it fails one call of one source and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from federator.connector.errors import FederatorError, Internal


def of_connector(source: str, error: Exception) -> FederatorError:
    """Return the error itself if it is a FederatorError, else an Internal that names its type.

    The text of a foreign error could hold anything, a secret included, and is left out.
    """
    return (
        error if isinstance(error, FederatorError) else Internal(f"{source}: the connector failed with {type(error).__name__}")
    )


@contextmanager
def edge(source: str) -> Iterator[None]:
    """Raise every exception as a FederatorError."""
    try:
        yield
    except FederatorError:
        raise
    except Exception as error:
        raise of_connector(source, error) from error
