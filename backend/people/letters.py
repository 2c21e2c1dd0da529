"""The links that people are sent: what a mail says, and whether it went or the link is shown instead."""

from __future__ import annotations

from dataclasses import dataclass

from backend import mail
from backend.people import service
from backend.settings import Settings

SUBJECTS = {"invitation": "Your invitation to Counterpoise", "reset": "A new password for Counterpoise"}
TEXT = """\
Hello {name},

{sentence}

{link}

The link works once and for {days}. If you did not expect this mail, leave it alone: nothing changes.
"""
SENTENCES = {
    "invitation": "you have been invited to Counterpoise. Open this link to choose a password and sign in:",
    "reset": "a new password for your account was asked for. Open this link to choose it:",
}


@dataclass(frozen=True)
class Delivery:
    """``mailed``: the mail server took it. ``link``: to be passed on by hand, where it did not or there is none."""

    mailed: bool
    link: str | None
    failed: bool = False


def deliver(settings: Settings, purpose: service.Purpose, name: str, email: str | None, secret: str) -> Delivery:
    """Mails a link where a mail server is set, else gives it back to be shown once."""
    link = service.sign_in_url(settings, secret)
    if not settings.smtp_url or not email:
        return Delivery(False, link)
    hours = service.HOURS_OF[purpose]
    days = f"{hours / 24:.0f} days" if hours > 24 else f"{hours:.0f} hours"
    text = TEXT.format(name=name, sentence=SENTENCES[purpose], link=link, days=days)
    if mail.send(settings, email, SUBJECTS[purpose], text):
        return Delivery(True, None)
    return Delivery(False, link, failed=True)
