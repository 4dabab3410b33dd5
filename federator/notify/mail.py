"""Sending by SMTP, over TLS unless the server is this machine."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage

from federator.notify.outcome import Refused, Unsent

_SECONDS = 15.0
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


def send(
    mail: EmailMessage,
    *,
    host: str,
    port: int | None = None,
    tls: str = "starttls",
    username: str | None = None,
    password: str | None = None,
    ca: str | None = None,
) -> None:
    """Hands a mail to a server. Raises Unsent, to be tried again, and Refused, which is final."""
    at = port or _PORTS[tls]
    try:
        context = ssl.create_default_context(cafile=ca)
        connected = (
            smtplib.SMTP_SSL(host, at, timeout=_SECONDS, context=context)
            if tls == "tls"
            else smtplib.SMTP(host, at, timeout=_SECONDS)
        )
        with connected as server:
            if tls == "starttls":
                server.starttls(context=context)
            if username is not None:
                server.login(username, password or "")
            refused = server.send_message(mail)
    except ssl.SSLError:
        raise Unsent("its certificate is not accepted, or it speaks no TLS") from None
    except smtplib.SMTPNotSupportedError:
        raise Refused("the server offers no STARTTLS, or no sign-in that we know") from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        raise _by_code(codes[0], f"it takes mail to none of the recipients ({', '.join(map(str, codes))})") from None
    except smtplib.SMTPResponseException as error:
        # What it says may repeat what we sent.
        raise _by_code(error.smtp_code, f"it answered {error.smtp_code} ({type(error).__name__})") from None
    except (smtplib.SMTPException, OSError) as error:
        raise Unsent(f"no answer ({type(error).__name__})") from None
    if refused:
        raise Refused(f"it takes mail to {len(refused)} of the recipients no more; the others got it")


def _by_code(code: int, message: str) -> Unsent | Refused:
    return Unsent(message) if 400 <= code < 500 else Refused(message)
