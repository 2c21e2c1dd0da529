"""People in a real browser: invited, locked out, expired, ended elsewhere, signed out, back button, clocks off, keyboard."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from backend.demo import settings_of_running
from tests.issuer import CLIENT, SECRET, Issuer, running_issuer
from tests.journeys.conftest import ROOT, Product, Visitor, free_port

pytestmark = [pytest.mark.browser, pytest.mark.services]
WORD = "a quiet river at dusk"
SOON = 30_000


@contextmanager
def database(product: Product) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The database of the running copy."""
    url = settings_of_running(product.var).database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def guest(browser: Browser) -> Iterator[Callable[..., Page]]:
    """A fresh browser in which nobody is signed in."""
    contexts = []

    def page(**options: object) -> Page:
        contexts.append(browser.new_context(**options))  # type: ignore[arg-type]  # what Playwright takes
        contexts[-1].set_default_timeout(SOON)
        return contexts[-1].new_page()

    yield page
    for context in contexts:
        context.close()


def invite(visit: Callable[..., Visitor], name: str, email: str) -> str:
    """The link that the admin is shown, by keyboard alone."""
    admin = visit("admin")
    admin.page.goto(admin.product.address + "/team")
    admin.tab_to("#name")
    admin.page.keyboard.type(name)
    admin.tab_to("#email")
    admin.page.keyboard.type(email)
    admin.page.keyboard.press("Enter")
    return admin.page.locator("code.secret").inner_text(timeout=SOON)


def accept(page: Page, link: str, product: Product) -> None:
    page.goto(link)
    page.get_by_label("Password", exact=True).fill(WORD)
    page.get_by_label("The same password again").fill(WORD)
    page.get_by_role("button", name="Keep it and sign in").click()
    page.wait_for_url(product.address + "/")


def sign_in(page: Page, email: str, word: str = WORD) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(word)
    page.get_by_role("button", name="Sign in", exact=True).press("Enter")


def test_invited_two_browsers_ended_elsewhere_and_everywhere(
    product: Product, visit: Callable[..., Visitor], guest: Callable[..., Page]
) -> None:
    link, here, there = invite(visit, "Ada", "ada@example.org"), guest(), guest()
    accept(here, link, product)
    there.goto(product.address + "/team")  # a page that follows no events, so that it does not notice by itself
    expect(there.locator(".sentence")).to_have_text("This page is for those who are signed in.")
    sign_in(there, "ada@example.org")
    there.wait_for_url(product.address + "/team")
    here.goto(product.address + "/me")
    here.get_by_role("button", name="End it").click()
    expect(here.get_by_role("status").filter(has_text="That session has ended.")).to_be_visible()
    there.get_by_role("link", name="Audits").click()
    expect(there.locator(".sentence")).to_contain_text("This session was ended from another browser.")
    sign_in(there, "ada@example.org")
    expect(there.locator("h1")).to_have_text("Audits")
    there.goto(product.address + "/team")
    here.goto(product.address + "/me")
    here.get_by_role("button", name="Sign out everywhere").click()
    here.wait_for_url(product.address + "/signed-out")
    there.reload()
    expect(there.locator(".sentence")).to_contain_text("You signed out everywhere")
    there.goto(link)
    expect(there.locator("h1")).to_have_text("This link cannot be used")


def test_another_tab_signs_out_and_back_shows_nothing(product: Product, guest: Callable[..., Page]) -> None:
    first = guest()
    first.goto(product.link("analyst"))
    first.get_by_role("button", name="Sign in").click()
    first.wait_for_url(product.address + "/")
    first.goto(product.address + "/me")
    second = first.context.new_page()
    second.goto(product.address + "/team")
    first.get_by_role("button", name="Sign out", exact=True).click()
    first.wait_for_url(product.address + "/signed-out")
    second.get_by_role("link", name="Audits").click()
    expect(second.locator("h1")).to_have_text("Sign in")
    for _ in range(2):
        first.go_back()
        expect(first.locator("h1")).to_have_text("Sign in")
        assert "Demo analyst" not in first.content()


def test_an_expired_session_is_said(product: Product, guest: Callable[..., Page]) -> None:
    page = guest()
    page.goto(product.link("dpo"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(product.address + "/")
    page.goto(product.address + "/team")
    with database(product) as connection:
        connection.execute(
            "UPDATE browser_session SET expires_at = now() - interval '1 second' WHERE person_id IN "
            "(SELECT id FROM person WHERE role = 'dpo')"
        )
    page.get_by_role("link", name="Datasets").click()
    expect(page.locator(".sentence").first).to_contain_text("This session has expired.", timeout=SOON)


def test_locked_out_is_said_and_a_link_still_opens(
    product: Product, visit: Callable[..., Visitor], guest: Callable[..., Page]
) -> None:
    page = guest()
    accept(page, invite(visit, "Bo", "bo@example.org"), product)
    page = guest()
    page.goto(product.address + "/sign-in")
    for _ in range(10):
        sign_in(page, "bo@example.org", "wrong")
        expect(page.get_by_role("alert")).to_contain_text("The e-mail address or the password is wrong.")
        page.goto(product.address + "/sign-in")
    sign_in(page, "bo@example.org")
    expect(page.get_by_role("alert")).to_contain_text("Signing in is locked for")
    expect(page.get_by_label("E-mail address")).to_have_value("bo@example.org")
    page.goto(product.link("bo@example.org"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(product.address + "/")
    with database(product) as connection:
        connection.execute("DELETE FROM sign_in_count")


def test_a_token_is_shown_once_and_the_log_tells_of_it(product: Product, visit: Callable[..., Visitor]) -> None:
    dpo = visit("dpo", viewport={"width": 360, "height": 800}, color_scheme="dark").page
    dpo.goto(product.address + "/tokens")
    dpo.get_by_label("Name").fill("nightly gate")
    dpo.get_by_role("button", name="Make the token").press("Enter")
    secret = dpo.locator("code.secret").inner_text(timeout=SOON)
    answer = dpo.context.request.get(product.address + "/api/v1/tokens", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status == 200
    dpo.goto(product.address + "/tokens")
    assert secret not in dpo.content()
    dpo.get_by_role("button", name="Revoke nightly gate").click()
    expect(dpo.get_by_role("status").filter(has_text="was revoked")).to_be_visible()
    dpo.goto(product.address + "/activity")
    dpo.get_by_label("What", exact=True).select_option("token.revoked")
    dpo.get_by_role("button", name="Show").click()
    expect(dpo.locator("tbody tr").first).to_contain_text("revoked a token")
    dpo.get_by_role("link", name="Check every row").click()
    expect(dpo.get_by_role("status").filter(has_text="each fits the one before")).to_be_visible()
    for path in ("/me", "/tokens", "/team", "/activity?check=yes"):
        dpo.goto(product.address + path)
        wide = dpo.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


def until_ready(address: str) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        try:
            if httpx.get(f"{address}/ready", timeout=10).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"{address} did not get ready")


@pytest.fixture
def beside(product: Product, issuer: Issuer) -> Iterator[str]:
    """A second web process over the same data, which knows the issuer; its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    found = settings_of_running(product.var)
    environment = {name.upper(): str(getattr(found, name)) for name in type(found).model_fields}
    environment |= {
        "BASE_URL": address,
        "OIDC_ISSUER": issuer.address,
        "OIDC_CLIENT_ID": CLIENT,
        "OIDC_CLIENT_SECRET": SECRET,
    }
    environment |= {"OIDC_NEWCOMERS": "analyst", "OIDC_TITLE": "Sign in at the office"}
    command = [sys.executable, "-m", "backend", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_ready(address)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def test_the_identity_provider_and_a_clock_that_is_off(beside: str, issuer: Issuer, guest: Callable[..., Page]) -> None:
    issuer.person = {"sub": "office-7", "name": "Grace", "email": "grace@example.org", "email_verified": True}
    page = guest()
    issuer.clock_off = -3600
    page.goto(beside + "/datasets")
    page.get_by_role("link", name="Sign in at the office").click()
    expect(page.get_by_role("alert")).to_contain_text("their clocks differ by more than two minutes")
    issuer.clock_off = 0
    page.goto(beside + "/datasets")
    page.get_by_role("link", name="Sign in at the office").click()
    page.wait_for_url(beside + "/datasets")
    expect(page.locator(".who")).to_contain_text("Grace")
    page.goto(beside + "/me")
    expect(page.locator(".sentence").first).to_contain_text(
        re.compile("fairness analyst of the team .+, with grace@example.org")
    )
