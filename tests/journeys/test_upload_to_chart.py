"""From a file on disk to the cost of privacy per group, in a real browser against everything really running."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Product, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.services]
SOON, LONG = 30_000, 150_000


def _people(path: Path, rows: int = 900) -> Path:
    """A table of people whose outcome follows their score; a few of its group names try to do harm."""
    draw = random.Random(1)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["score", "hours", "region", "sex", "outcome"])
        for _ in range(rows):
            score = draw.gauss(0, 1)
            sex = draw.choices(["Female", "Male", "<img src=x onerror=alert(1)>"], [5, 5, 1])[0]
            outcome = "yes" if score + draw.gauss(0, 0.5) > 0 else "no"
            writer.writerow([f"{score:.3f}", draw.randint(1, 60), draw.choice("NSEW"), sex, outcome])
    return path


def _shorten(page: Page) -> None:
    """A small audit: two epsilons, three seeds, few epochs."""
    page.get_by_label("Values of epsilon").fill("1 8")
    page.get_by_text("Training, delta and seeds").click()
    page.get_by_label("Epochs").fill("3")
    page.get_by_label("Batch size").fill("64")
    page.get_by_label("Another number of seeds").fill("3")


def _finished_with_chart(page: Page) -> None:
    """Without a reload: the page follows the events, and both charts are drawn."""
    expect(page.locator(".opening .facts")).to_contain_text("finished", timeout=LONG)
    expect(page.locator(".sentence").first).to_contain_text("DP-SGD", timeout=SOON)
    for chart in page.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        expect(chart).to_have_attribute("data-drawn", "yes", timeout=SOON)
    assert page.locator("[data-chart] svg.main-svg").count() > 0


def _costs(product: Product, audit: str) -> list[dict[str, object]]:
    token = (product.var / "token").read_text("utf-8").strip()
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{product.address}/api/v1/audits/{audit}/costs", headers=headers, timeout=30)
    answer.raise_for_status()
    rows: list[dict[str, object]] = answer.json()["rows"]
    return rows


def test_from_an_upload_to_the_chart_by_mouse(visit: Callable[..., Visitor], tmp_path: Path) -> None:
    visitor = visit()
    page, product = visitor.page, visitor.product
    page.get_by_role("link", name="Datasets").click()
    page.get_by_role("link", name="New dataset").first.click()
    page.get_by_label("Table", exact=True).set_input_files(_people(tmp_path / "people.csv"))
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="Columns and their roles")).to_be_visible(timeout=SOON)
    page.get_by_label("sex", exact=True).select_option("protected")
    page.get_by_label("outcome", exact=True).select_option("target")
    page.get_by_label(re.compile("Favourable value")).select_option("yes")
    page.get_by_role("button", name="Set the roles").click()
    groups = page.get_by_role("table").first
    expect(groups).to_contain_text("sex: Female", timeout=SOON)
    expect(groups).to_contain_text("<img src=x onerror=alert(1)>")

    page.get_by_role("link", name="New audit of this dataset").click()
    _shorten(page)
    expect(page.get_by_text("9 runs")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Start the audit").click()
    page.wait_for_url(re.compile("/audits/[0-9a-f]{32}"))
    audit = page.url.split("?")[0].rsplit("/", 1)[1]
    _finished_with_chart(page)

    rows = _costs(product, audit)
    assert {row["seeds"] for row in rows} == {3}
    women = next(row for row in rows if row["group"] == "sex=Female" and row["epsilon_asked"] == 8)
    assert isinstance(women["cost"], float)
    page.get_by_text("The same numbers as a table").last.click()
    twin = page.locator("[data-chart] table").last
    expect(twin).to_contain_text(f"{100 * women['cost']:.1f}".replace("-", "−"))
    page.get_by_label("Metric").select_option("loss")
    page.wait_for_url(re.compile("metric=loss"))
    page.reload()
    expect(page.get_by_label("Metric")).to_have_value("loss")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_role("table").first).to_contain_text("DP-SGD")


def test_from_a_sample_to_the_chart_by_keyboard_alone(visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    page = visitor.page
    keys = page.keyboard
    visitor.tab_to("a[href='/datasets']")
    keys.press("Enter")
    page.wait_for_url("**/datasets")
    expect(page.get_by_role("link", name="Toronto arrests")).to_be_visible(timeout=SOON)
    visitor.tab_to("main a[href^='/datasets/']:not([href='/datasets/new'])")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Columns and their roles")).to_be_visible(timeout=SOON)
    if page.get_by_role("link", name="New audit of this dataset").count() == 0:
        visitor.tab_to("form[data-roles] .actions button")
        keys.press("Enter")
    expect(page.get_by_role("link", name="New audit of this dataset")).to_be_visible(timeout=SOON)
    page.locator("h1").first.click()
    visitor.tab_to("a[href^='/audits/new']")
    keys.press("Enter")
    page.wait_for_url("**/audits/new?**")
    visitor.tab_to("input[name=epsilons]")
    keys.press("Control+A")
    keys.type("2")
    visitor.tab_to("summary")
    keys.press("Enter")
    visitor.tab_to("input[name='training.epochs']")
    keys.press("Control+A")
    keys.type("2")
    visitor.tab_to("input[name=other_seeds]")
    keys.type("2")
    visitor.tab_to("form[data-forecast] button.first")
    keys.press("Enter")
    page.wait_for_url(re.compile("/audits/[0-9a-f]{32}"))
    _finished_with_chart(page)


def test_a_second_person_sees_it_and_a_stopped_audit_can_be_resumed(visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    page = visitor.page
    page.goto(visitor.product.address + "/datasets")
    page.get_by_role("link", name="Toronto arrests").click()
    ready = page.get_by_role("link", name="New audit of this dataset")
    give = page.get_by_role("button", name="Set the roles")
    expect(ready.or_(give).first).to_be_visible(timeout=SOON)
    if ready.count() == 0:
        give.click()
    ready.click(timeout=SOON)
    page.get_by_label("Values of epsilon").fill("0.5 1 2 4")
    page.get_by_text("Training, delta and seeds").click()
    page.get_by_label("Epochs").fill("300")
    page.get_by_role("button", name="Start the audit").click()
    page.wait_for_url(re.compile("/audits/[0-9a-f]{32}"))
    expect(page.locator(".opening .facts")).to_contain_text("training", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".opening .facts")).to_contain_text("stopped", timeout=SOON)
    dpo = visit("dpo").page
    dpo.goto(page.url)
    expect(dpo.locator(".opening .facts")).to_contain_text("stopped")
    expect(dpo.get_by_role("button", name="Resume")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".opening .facts")).to_contain_text("training", timeout=LONG)
    expect(dpo.locator(".opening .facts")).to_contain_text("training", timeout=SOON)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".opening .facts")).to_contain_text("stopped", timeout=SOON)


def test_how_a_table_was_read_is_seen_and_changed(visit: Callable[..., Visitor], tmp_path: Path) -> None:
    """Spellings are proposed and merged only when ticked; the page fills in by itself, and the roles stay."""
    path = tmp_path / "spellings.csv"
    cells = ("F", "f", "Female", "M", "Male")
    rows = [f"{cells[i % 5]};{i / 4:.2f};{'yn'[i % 3 % 2]}".replace(".", ",") for i in range(400)]
    path.write_text("\n".join(["sex;pay;outcome", *rows]), "utf-8")
    page = visit().page
    page.get_by_role("link", name="Datasets").click()
    page.get_by_role("link", name="New dataset").first.click()
    page.get_by_label("Table", exact=True).set_input_files(path)
    page.get_by_role("button", name="Upload").click()
    read = page.get_by_role("region", name="How it was read")
    expect(read).to_contain_text("semicolon", timeout=SOON)
    expect(read).to_contain_text("comma")
    page.get_by_role("button", name="Set the roles").click()
    expect(page.get_by_role("table").first).to_contain_text("sex: f", timeout=SOON)
    page.get_by_text("Change how it is read").click()
    page.get_by_label(re.compile("→ Female")).check()
    page.get_by_label(re.compile("→ Male")).check()
    page.get_by_text("Labels: what columns and values").click()
    page.get_by_label("Label of sex").fill("Gender")
    page.get_by_role("button", name="Read it anew").click()
    groups = page.get_by_role("table").first
    expect(groups).to_contain_text("Gender: Female", timeout=SOON)
    expect(groups.get_by_role("row")).to_have_count(4)
