"""``python -m backend serve | migrate | demo | link | doctor | permissions``; installed as ``counterpoise``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from backend.embedded import DemoProblem

ROOT = Path(__file__).resolve().parent.parent


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    options = _parser().parse_args(words)
    try:
        return int(options.run(options))
    except DemoProblem as problem:
        print(problem, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("counterpoise", description="What differential privacy costs each group.")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser("demo", help="run everything on this machine until Ctrl-C")
    demo.add_argument("--port", type=_port, default=8000, help="where the web listens on 127.0.0.1 (8000)")
    demo.add_argument("--with-parent", action="store_true", help="stop when the process that started it ends")
    demo.set_defaults(run=_demo)
    link = commands.add_parser(
        "link", help="print a fresh one-time sign-in link; on a server at first the first admin's"
    )
    link.add_argument("who", nargs="?", help="a role or an e-mail address (in the demo analyst, on a server admin)")
    link.set_defaults(run=_link)
    doctor = commands.add_parser("doctor", help="say what is up, and which versions")
    doctor.set_defaults(run=_doctor)
    for command in (demo, link, doctor):
        command.add_argument("--var", type=Path, help="folder of the data (var beside the code)")
    permissions = commands.add_parser("permissions", help="print the table of permissions, as docs/permissions.md")
    permissions.set_defaults(run=_permissions)
    migrate = commands.add_parser("migrate", help="bring the database of DATABASE_URL to the newest schema")
    migrate.set_defaults(run=_migrate)
    serve = commands.add_parser("serve", help="the web process, with settings from the environment")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_port, default=8000)
    serve.set_defaults(run=_serve)
    return parser


def _port(word: str) -> int:
    try:
        port = int(word)
    except ValueError:
        port = 0
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"{word} is not a port: a whole number from 1 to 65535")
    return port


def folder_of(options: argparse.Namespace) -> Path:
    """``--var``, else COUNTERPOISE_VAR, else ``var`` beside the code."""
    named = options.var or os.environ.get("COUNTERPOISE_VAR") or ROOT / "var"
    return Path(named).absolute()


def _demo(options: argparse.Namespace) -> int:
    from backend import demo
    from backend.demo_commands import server_commands
    from backend.demo_people import prepare

    asked = demo.Options(folder_of(options), options.port, options.with_parent)
    return demo.run(asked, prepare, server_commands)


def _link(options: argparse.Namespace) -> int:
    from backend.doctor import settings_at_hand
    from backend.link import fresh_link

    print(fresh_link(settings_at_hand(folder_of(options)), options.who))
    return 0


def _permissions(_options: argparse.Namespace) -> int:
    from backend.permissions import as_markdown

    print(as_markdown(), end="")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from backend.doctor import report

    lines, well = report(folder_of(options))
    print("\n".join(lines))
    return 0 if well else 1


def _migrate(_options: argparse.Namespace) -> int:
    from backend import migrate

    url = os.environ.get("DATABASE_URL")
    if not url:
        print(
            "DATABASE_URL is not set. It names the database to bring up to date. Set it and run again.", file=sys.stderr
        )
        return 2
    migrate.upgrade(url)
    print(f"The database stands at {migrate.newest_revision()}.")
    return 0


def _serve(options: argparse.Namespace) -> int:
    import uvicorn

    uvicorn.run("backend.app:create_app", factory=True, host=options.host, port=options.port, access_log=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
