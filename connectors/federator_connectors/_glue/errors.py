"""Mapping of AWS errors to ``CatalogError``.

The Lance Glue spec uses "16 (Forbidden)" for denied access. A denial is therefore ``Unauthenticated`` (16) with the text "access
denied", and this connector never raises code 15. Sources: the Glue API reference (errors of each action) and AWS's "Common
errors". AWS names the error in ``Code``. Proxies and moto's policy enforcement may put the HTTP status there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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

_DENIED = {
    "AccessDenied", "AccessDeniedException", "AuthFailure", "NotAuthorized", "OptInRequired", "PermissionTypeMismatchException",
    "UnauthorizedOperation",
}  # fmt: skip
_INVALID_CREDENTIALS = {
    "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId",
    "InvalidSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "RequestExpired",
    "SignatureDoesNotMatch", "UnrecognizedClientException",
}  # fmt: skip
_THROTTLED = {
    "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "SlowDown", "Throttling",
    "ThrottledException", "ThrottlingException", "TooManyRequestsException",
}  # fmt: skip
_CONCURRENT_MODIFICATION = {"ConcurrentModificationException", "ConditionCheckFailureException", "VersionMismatchException"}
#: Glue's own status for EntityNotFoundException, and that of metastores that name the error by its status
_STATUS_OF_ABSENCE = {400, 404}
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
def translate_aws_errors(
    operation: str, *, missing: type[CatalogError] = Internal, existing: type[CatalogError] = Internal
) -> Iterator[None]:
    """Re-raise each error of AWS and of its client as a CatalogError.

    Its text starts with ``operation``, for example ``aws: reading table sales.orders``. ``missing`` and ``existing`` are the errors
    for EntityNotFoundException and AlreadyExistsException.
    """
    try:
        yield
    except ClientError as error:
        # Not chained: for a wrong signature, AWS repeats the signed headers in its text, and a session token is one of them.
        raise _error_for_response(error, operation, missing, existing) from None
    except BotoCoreError as error:
        raise _error_for_client(error, operation) from None
    except FederatorError:
        raise
    except Exception as error:
        # botocore's parsers trust the types in a response: a list in place of an object raises an AttributeError, for example.
        raise Internal(f"{operation}: the response cannot be read ({type(error).__name__})") from error


def _error_for_response(
    error: ClientError, operation: str, missing: type[CatalogError], existing: type[CatalogError]
) -> CatalogError:
    code, text = _error_code_and_text(error.response)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    details = _describe_response(code, text, status)
    # With any other status, a proxy or a failing service has responded: that proves nothing about the object.
    if code == "EntityNotFoundException" and status in _STATUS_OF_ABSENCE:
        return missing(f"{operation}: not found ({details})")
    if code in ("AlreadyExistsException", "FederatedResourceAlreadyExistsException"):
        return existing(f"{operation}: already exists ({details})")
    if code in _INVALID_CREDENTIALS:
        return Unauthenticated(f"{operation}: AWS does not accept the credentials ({code})", hint="check keys, token and clock")
    if code in _CONCURRENT_MODIFICATION:
        return ConcurrentModification(f"{operation}: changed meanwhile ({details})", hint="read the object again and retry")
    if code in _INVALID:
        return InvalidInput(f"{operation}: {details}")
    return _error_for_status(code, status, operation, details, error.operation_name)


def describe_response(parsed: Mapping[str, Any], status: int) -> str:
    """Return the text of an error response that botocore has parsed: the error's name and text, or its HTTP status."""
    return _describe_response(*_error_code_and_text(parsed), status)


def _describe_response(code: str, text: str, status: int) -> str:
    return f"{code}: {text}" if text else code or f"HTTP {status}"


def _error_code_and_text(parsed: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the text of an error.

    Glue's clients do not parse the XML with which AWS's query services respond: the text of the error is then the whole XML.
    """
    response = parsed.get("Error", {})
    code, text = str(response.get("Code", "")), str(response.get("Message", "")).strip()
    xml_code, xml_message = _XML_CODE.search(text), _XML_MESSAGE.search(text)
    return (xml_code[1] if xml_code else code), (xml_message[1].strip() if xml_message else text)


def _error_for_status(code: str, status: int, operation: str, details: str, action: str) -> CatalogError:
    message = f"{operation}: {details}"
    if code in _THROTTLED or status == 429:
        return Throttled(message, hint="wait, or crawl this source less often")
    if code in _DENIED or status in (401, 403):
        return Unauthenticated(
            f"{operation}: access denied ({details})", hint=f"allow {action} in IAM and, if used, Lake Formation"
        )
    if code in _UNKNOWN_CALL or status == 501:
        return Unsupported(f"{operation}: the service does not support {action} ({details})")
    if code in _UNAVAILABLE or status >= 500:
        return ServiceUnavailable(message, hint="try again later")
    return Internal(message)


def describe_connection(error: BotoCoreError) -> str:
    """Return why no response came."""
    server = error.kwargs.get("proxy_url") or error.kwargs.get("endpoint_url") or "the service"
    if isinstance(error, boto.ReadTimeoutError):
        return f"{server} did not respond in time"
    if isinstance(error, boto.ConnectTimeoutError):
        return f"{server} cannot be reached in time"
    if isinstance(error, boto.EndpointConnectionError | boto.ProxyConnectionError):
        return f"{server} cannot be reached"
    if isinstance(error, boto.ConnectionClosedError):
        return f"{server} closed the connection"
    return f"{server} cannot be reached ({error.kwargs.get('error') or error})"


def _error_for_client(error: BotoCoreError, operation: str) -> CatalogError:
    if isinstance(error, _NO_CREDENTIALS):
        return Unauthenticated(
            f"{operation}: no usable AWS credentials ({error})",
            hint="set glue.access_key_id and glue.secret_access_key, or give the process a role",
        )
    if isinstance(error, _MISCONFIGURED):
        return InvalidInput(f"{operation}: {error}", hint="set glue.region, or AWS_REGION and AWS_PROFILE")
    if isinstance(error, boto.ParamValidationError):
        return InvalidInput(f"{operation}: {error}")
    if isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        hint = "check glue.endpoint, glue.region and the network"
        return ServiceUnavailable(f"{operation}: {describe_connection(error)}", hint=hint)
    return Internal(f"{operation}: {error}")
