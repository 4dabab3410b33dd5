"""Translation of unexpected exceptions of a connector, so that its callers get only FederatorErrors.

Each connector maps the errors of its native client in one place. Any other exception is a defect of the connector. Here it becomes
``Internal`` (18), so that it fails only one call of one source.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from federator.connector.errors import FederatorError, Internal


def as_federator_error(source: str, error: Exception) -> FederatorError:
    """Return the error itself if it is a FederatorError, else an Internal that names its type.

    The text of a foreign error is left out, because it could contain a secret.
    """
    return (
        error if isinstance(error, FederatorError) else Internal(f"{source}: the connector failed with {type(error).__name__}")
    )


@contextmanager
def translate_native_errors(source: str, *passed: type[Exception]) -> Iterator[None]:
    """Translate every exception into a FederatorError, except those of the types ``passed``."""
    try:
        yield
    except passed:
        raise
    except Exception as error:
        if isinstance(error, FederatorError):
            raise
        raise as_federator_error(source, error) from error
