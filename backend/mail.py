"""Mail by SMTP, where the settings name a server. Sent after the commit, never inside a transaction."""

from __future__ import annotations

import logging
import smtplib
import ssl
from contextlib import closing
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

from backend.settings import Settings

log = logging.getLogger("counterpoise.web")

TIMEOUT_SECONDS = 10
PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}


def send(settings: Settings, to: str, subject: str, text: str) -> bool:
    """Whether the server took the mail. What went wrong is in the log, without address or content."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = settings.mail_from, to, subject
    message["Date"] = formatdate(usegmt=True)
    message["Message-ID"] = make_msgid(domain=settings.mail_from.rpartition("@")[2] or "localhost")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    try:
        _deliver(settings.smtp_url, message)
    except (OSError, smtplib.SMTPException, ValueError) as problem:
        log.warning("A mail could not be sent (%s).", type(problem).__name__)
        return False
    return True


def _deliver(url: str, message: EmailMessage) -> None:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    if parts.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context()
        )
    else:
        server = smtplib.SMTP(host, port, timeout=TIMEOUT_SECONDS)
    with closing(server):
        if parts.scheme == "smtp":
            server.starttls(context=ssl.create_default_context())
        if parts.username:
            server.login(unquote(parts.username), unquote(parts.password or ""))
        server.send_message(message)
        server.quit()
