"""Authentication at an Iceberg REST server: a fixed token, renewed tokens, or AWS signatures."""

from __future__ import annotations

from urllib.parse import urlsplit

import requests

from federator.connector import ConfigError, Unauthenticated
from federator_connectors._http.authentication import AdditionalHeaders, Authentication, FixedHeaders
from federator_connectors._http.client import Sign
from federator_connectors._http.client_credentials import TokenClient, shared_token
from federator_connectors._iceberg.errors import error_for_token_response
from federator_connectors._iceberg.settings import IcebergSettings

_TOKENS = "/v1/oauth/tokens"


def build_authentication(source: str, settings: IcebergSettings) -> Authentication:
    """Build the authentication of a source's requests, with the configured headers."""
    authentication = _build_token_authentication(source, settings)
    return AdditionalHeaders(authentication, settings.headers) if settings.headers else authentication


def _build_token_authentication(source: str, settings: IcebergSettings) -> Authentication:
    if settings.credential is None:
        return FixedHeaders.bearer(settings.auth_token)
    # ``credential`` is CLIENT_ID:SECRET.
    client_id, _, secret = settings.credential.partition(":")
    return shared_token(
        TokenClient(
            source=source, url=settings.token_url or settings.endpoint + _TOKENS, client_id=client_id, secret=secret,
            scope=settings.scope, error_of=error_for_token_response, timeouts=settings.timeouts, limits=settings.limits,
            tls=settings.tls,
        )
    )  # fmt: skip


def build_signature(source: str, settings: IcebergSettings) -> Sign | None:
    """Return what signs requests with AWS Signature Version 4. None if ``sigv4`` is not set.

    Raise ConfigError if the environment has no credentials of AWS.
    """
    if not settings.sigv4:
        return None
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    credentials = Session().get_credentials()
    if credentials is None:
        raise ConfigError(
            f"{source}: sigv4 needs credentials of AWS", hint="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"
        )
    service, region = settings.signing_name, settings.signing_region or ""

    def sign(request: requests.PreparedRequest) -> None:
        try:
            frozen = credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise Unauthenticated(f"{source}: AWS gives no credentials for signatures ({type(error).__name__})") from error
        # A signature is for a query whose spaces are encoded as %20.
        url = urlsplit(request.url or "")
        request.url = url._replace(query=url.query.replace("+", "%20")).geturl()
        # Only headers that no proxy changes are signed.
        signed = AWSRequest(request.method, request.url, data=request.body or b"")
        SigV4Auth(frozen, service, region).add_auth(signed)
        request.headers.update(signed.headers.items())

    return sign
