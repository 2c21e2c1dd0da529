"""A mail server of the tests' own: takes mails on this machine and keeps them; speaks the few words that are needed."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.policy import default


@dataclass
class Mailbox:
    """Mails that came; ``refuses`` makes the server turn every recipient away."""

    port: int = 0
    mails: list[Message] = field(default_factory=list)
    refuses: bool = False
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


def _handler(box: Mailbox) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                word = line[:4].upper()
                if word == "DATA":
                    self.say("354 go on")
                    self.take()
                elif word == "RCPT" and box.refuses:
                    self.say("550 nobody here")
                else:
                    self.say("221 bye" if word == "QUIT" else "250 well")

        def take(self) -> None:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line)
            box.mails.append(email.message_from_bytes(b"".join(lines), policy=default))
            box.came.release()
            self.say("250 taken")

    return Handler


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """Listens on a free port of this machine until the block ends."""
    box = Mailbox()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _handler(box)) as server:
        server.daemon_threads = True
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield box
        server.shutdown()
        thread.join()
