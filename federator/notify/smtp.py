"""Delivery by SMTP, over TLS unless the server is on this machine."""

from __future__ import annotations

import binascii
import smtplib
import ssl
from email.message import EmailMessage

from federator.notify.errors import PermanentDeliveryError, TemporaryDeliveryError

_TIMEOUT_SECONDS = 15.0
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


def send_mail(
    mail: EmailMessage,
    *,
    host: str,
    port: int | None = None,
    tls: str = "starttls",
    username: str | None = None,
    password: str | None = None,
    ca: str | None = None,
) -> None:
    """Send a mail to a server. Raise TemporaryDeliveryError or PermanentDeliveryError, the latter also if only some recipients got it.

    ``tls`` is ``starttls``, ``tls`` or ``none``; it determines the default of ``port``. ``ca`` is the path of a file with certificates
    of authorities, by default the system's.
    """
    server_port = port or _PORTS[tls]
    try:
        context = ssl.create_default_context(cafile=ca)
        connection = (
            smtplib.SMTP_SSL(host, server_port, timeout=_TIMEOUT_SECONDS, context=context)
            if tls == "tls"
            else smtplib.SMTP(host, server_port, timeout=_TIMEOUT_SECONDS)
        )
        with connection as server:
            if tls == "starttls":
                server.starttls(context=context)
            if username is not None:
                server.login(username, password or "")
            refused = server.send_message(mail)
    except ssl.SSLError:
        raise TemporaryDeliveryError("the server's certificate is not accepted, or it does not support TLS") from None
    except smtplib.SMTPNotSupportedError:
        raise PermanentDeliveryError("the server does not support STARTTLS, or no known authentication method") from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        # The lowest code decides: if the refusal of one recipient is temporary, a later attempt may succeed.
        raise _error_for_code(codes[0], f"the server refused all recipients ({', '.join(map(str, codes))})") from None
    except smtplib.SMTPResponseException as error:
        # The server's text may repeat what was sent, so it is omitted.
        raise _error_for_code(error.smtp_code, f"the server returned {error.smtp_code} ({type(error).__name__})") from None
    except UnicodeError:
        raise PermanentDeliveryError("username or password is not ASCII, or host is not a host name") from None
    except (smtplib.SMTPException, OSError, binascii.Error) as error:
        raise TemporaryDeliveryError(f"no response ({type(error).__name__})") from None
    if refused:
        raise PermanentDeliveryError(f"the server refused {len(refused)} of the recipients; the others received it")


def _error_for_code(code: int, message: str) -> TemporaryDeliveryError | PermanentDeliveryError:
    return TemporaryDeliveryError(message) if 400 <= code < 500 else PermanentDeliveryError(message)
