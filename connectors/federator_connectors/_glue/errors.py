"""The one place where an answer of AWS becomes an error of ours.

The Glue spec's "16 (Forbidden)" stands for denied access, so denials are ``Unauthenticated`` (16) here, with a text that says
"access denied"; this connector never raises 15. Sources: the Glue API reference (errors of each action) and AWS's "Common
errors". AWS names the error in ``Code``; proxies and moto's policy enforcement may put the bare status there instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    FederatorError,
    Internal,
    InvalidInput,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
)

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthFailure", "OptInRequired", "NotAuthorized"}
_UNACCEPTED = {
    "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId",
    "InvalidSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "RequestExpired",
    "SignatureDoesNotMatch", "UnrecognizedClientException",
}  # fmt: skip
_THROTTLED = {
    "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "SlowDown", "Throttling",
    "ThrottledException", "ThrottlingException", "TooManyRequestsException",
}  # fmt: skip
_MOVED = {"ConcurrentModificationException", "ConditionCheckFailureException", "VersionMismatchException"}
_INVALID = {"InvalidInputException", "InvalidParameterValue", "ValidationError", "ValidationException"}
_UNAVAILABLE = {
    "FederationSourceRetryableException", "InternalFailure", "InternalServerException", "InternalServiceException",
    "OperationTimeoutException", "ResourceNotReadyException", "ServiceUnavailable", "ServiceUnavailableException",
}  # fmt: skip
_UNKNOWN_CALL = {
    "InvalidAction",
    "NotImplemented",
    "UnknownOperation",
    "UnknownOperationException",
    "UnsupportedOperationException",
}

_XML_CODE = re.compile(r"<Code>([^<]*)</Code>")
_XML_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")

_NO_CREDENTIALS = (
    boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError, boto.TokenRetrievalError, boto.SSOError,
    boto.NoAuthTokenError, boto.MetadataRetrievalError,
)  # fmt: skip
_MISCONFIGURED = (boto.NoRegionError, boto.InvalidRegionError, boto.ProfileNotFound, boto.ConfigNotFound, boto.ConfigParseError)


@contextmanager
def calling(what: str, *, missing: type[CatalogError] = Internal, existing: type[CatalogError] = Internal) -> Iterator[None]:
    """Raises every error of AWS, and of its client, as a CatalogError whose text starts with ``what``.

    E.g. ``aws: reading table sales.orders``.

    ``missing`` and ``existing`` are what EntityNotFoundException and AlreadyExistsException mean for this call.
    """
    try:
        yield
    except ClientError as error:
        # Not chained: AWS repeats the signed headers, a session token among them, in the text of a wrong signature.
        raise _of_answer(error, what, missing, existing) from None
    except BotoCoreError as error:
        raise _of_client(error, what) from None
    except FederatorError:
        raise
    except Exception as error:
        # botocore's parsers trust a response's types: a list where an object belongs ends in an AttributeError, and so on.
        raise Internal(f"{what}: the response cannot be read ({type(error).__name__})") from error


def _of_answer(error: ClientError, what: str, missing: type[CatalogError], existing: type[CatalogError]) -> CatalogError:
    code, text = _said(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    said = f"{code}: {text}" if text else code or f"HTTP {status}"
    if code == "EntityNotFoundException":
        return missing(f"{what}: not found ({said})")
    if code in ("AlreadyExistsException", "FederatedResourceAlreadyExistsException"):
        return existing(f"{what}: it exists already ({said})")
    if code in _UNACCEPTED:
        return Unauthenticated(f"{what}: AWS does not accept the credentials ({code})", hint="check keys, token and clock")
    if code in _MOVED:
        return ConcurrentModification(f"{what}: changed meanwhile ({said})", hint="read it again and decide anew")
    if code in _INVALID:
        return InvalidInput(f"{what}: {said}")
    return _by_status(code, status, f"{what}: {said}", what, said, error.operation_name)


def _said(error: ClientError) -> tuple[str, str]:
    """The name and the text of an error. A query-style XML answer, which Glue's clients do not read, stands in the text."""
    answer = error.response.get("Error", {})
    code, text = str(answer.get("Code", "")), str(answer.get("Message", "")).strip()
    name, said = _XML_CODE.search(text), _XML_MESSAGE.search(text)
    return name[1] if name else code, said[1].strip() if said else text


def _by_status(code: str, status: int, message: str, what: str, said: str, operation: str) -> CatalogError:
    if code in _THROTTLED or status == 429:
        return Throttled(message, hint="wait, or crawl this source less often")
    if code in _DENIED or status in (401, 403):
        return Unauthenticated(f"{what}: access denied ({said})", hint=f"allow {operation} in IAM and, if used, Lake Formation")
    if code in _UNKNOWN_CALL or status == 501:
        return Unsupported(f"{what}: the service does not know {operation} ({said})")
    if code in _UNAVAILABLE or status >= 500:
        return ServiceUnavailable(message, hint="try again later")
    return Internal(message)


def _of_client(error: BotoCoreError, what: str) -> CatalogError:
    if isinstance(error, _NO_CREDENTIALS):
        return Unauthenticated(
            f"{what}: no usable AWS credentials ({error})",
            hint="set glue.access_key_id and glue.secret_access_key, or give the process a role",
        )
    if isinstance(error, _MISCONFIGURED):
        return InvalidInput(f"{what}: {error}", hint="set glue.region, or AWS_REGION and AWS_PROFILE")
    if isinstance(error, boto.ParamValidationError):
        return InvalidInput(f"{what}: {error}")
    if isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return ServiceUnavailable(
            f"{what}: cannot reach the service ({error})", hint="check glue.endpoint, glue.region and the network"
        )
    return Internal(f"{what}: {error}")
