"""The whole product as `make demo` starts it, and a real browser in front of it. Nothing is replaced."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
STARTED_WITHIN_SECONDS = 90


@dataclass(frozen=True)
class Product:
    """A running copy: its address and its folder."""

    address: str
    var: Path

    def link(self, role: str) -> str:
        """A fresh one-time sign-in link, as `counterpoise link` prints it."""
        done = subprocess.run(
            [sys.executable, "-m", "backend", "link", "--var", str(self.var), role],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return re.findall(r"http\S+", done.stdout)[-1]


def start_product(var: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    """Start the demo and wait until it says where it is."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "backend", "demo", "--var", str(var), "--port", str(port)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    end = time.monotonic() + STARTED_WITHIN_SECONDS
    while "Counterpoise is at" not in log.read_text("utf-8"):
        assert process.poll() is None, log.read_text("utf-8")
        assert time.monotonic() < end, log.read_text("utf-8")
        time.sleep(0.1)
    return process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    with tempfile.TemporaryDirectory(prefix="cpj-") as folder:
        Path(folder).chmod(0o711)
        var, port = Path(folder) / "var", free_port()
        process = start_product(var, port, Path(folder) / "said")
        yield Product(f"http://127.0.0.1:{port}", var)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def chromium_path() -> str | None:
    """Debian's Chromium, or another on the path; None lets Playwright take its own."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium_path(), args=list(QUIET))
        yield opened
        opened.close()


class Visitor:
    """A signed-in person in a browser of their own; every complaint of a page is kept."""

    def __init__(self, product: Product, context: BrowserContext, role: str) -> None:
        self.product = product
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self._hear("error", str(error)))
        self.page.goto(product.link(role))
        self.page.get_by_role("button", name="Sign in").press("Enter")
        self.page.wait_for_url(product.address + "/")

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def tab_to(self, reached: str, most: int = 120) -> None:
        """Press Tab until the focused element matches the selector."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("selector => document.activeElement?.matches(selector) ?? false", reached):
                return
        raise AssertionError(f"{reached} cannot be reached by keyboard on {self.page.url}")


@pytest.fixture
def visit(product: Product, browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Opens a fresh browser context for a role and checks at the end that no page complained."""
    visitors: list[Visitor] = []
    contexts: list[BrowserContext] = []

    def open_one(role: str = "analyst", **context: object) -> Visitor:
        contexts.append(browser.new_context(**context))  # type: ignore[arg-type]  # what Playwright takes
        visitors.append(Visitor(product, contexts[-1], role))
        return visitors[-1]

    yield open_one
    for context in contexts:
        context.close()
    assert [complaint for visitor in visitors for complaint in visitor.complaints] == []
