"""Pictures of every page, light, dark, 360 px wide and printed, into ``screenshots/``: `make screenshots`.

A fresh copy of the product audits the bundled Adult sample with the defaults, so the pictures show real numbers.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from tests.journeys.conftest import QUIET, ROOT, Product, Visitor, chromium_path, free_port, start_product

LOOKS = (("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 360, "light"), ("print", 800, "light"))
ROLES = {"target": {"column": "income", "favourable": ">50K"}, "protected": ["gender", "race"]}
ENDED = ("finished", "failed", "stopped")


def audited(product: Product) -> tuple[str, str]:
    """Ids of the Adult sample and of a finished audit of it."""
    token = (product.var / "token").read_text("utf-8").strip()
    with httpx.Client(base_url=f"{product.address}/api/v1", headers={"Authorization": f"Bearer {token}"}) as client:
        found = client.get("/datasets").json()["items"]
        dataset = next(one["id"] for one in found if one["sample"] == "adult")
        while client.get(f"/datasets/{dataset}").json()["state"] == "received":
            time.sleep(0.2)
        client.put(f"/datasets/{dataset}/roles", json=ROLES, timeout=60).raise_for_status()
        question = {"dataset": dataset, "methods": ["dp-sgd"], "epsilons": [0.1, 0.3, 1, 3, 8], "seeds": 5}
        question["network"] = {"kind": "mlp", "hidden": [64]}
        audit = client.post("/audits", json=question, timeout=60).raise_for_status().json()["id"]
        while client.get(f"/audits/{audit}").json()["state"] not in ENDED:
            time.sleep(1)
    return dataset, audit


def pages_of(dataset: str, audit: str) -> dict[str, str]:
    """Name of each picture, and the address of its page."""
    return {
        "audits": "/",
        "datasets": "/datasets",
        "dataset-new": "/datasets/new",
        "dataset": f"/datasets/{dataset}",
        "audit-new": f"/audits/new?dataset={dataset}",
        "audit": f"/audits/{audit}",
        "audit-loss": f"/audits/{audit}?metric=loss&by=gender",
        "audit-gaps": f"/audits/{audit}?tab=gaps&by=race",
        "audit-odds": f"/audits/{audit}?tab=gaps&metric=equalized_odds",
        "audit-tradeoff": f"/audits/{audit}?tab=tradeoff",
        "audit-runs": f"/audits/{audit}?tab=runs",
        "account": "/me",
        "tokens": "/tokens",
        "team": "/team",
        "help": "/help",
        "glossary": "/glossary",
        "missing": "/no-such-page",
    }


def settle(page: Page) -> None:
    """Scroll through, so that every chart draws itself, and come back."""
    page.wait_for_timeout(800)
    for top in range(0, page.evaluate("document.documentElement.scrollHeight"), 400):
        page.evaluate("top => window.scrollTo(0, top)", top)
        page.wait_for_timeout(150)
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(400)


def shoot(product: Product, browser: Browser, folder: Path) -> None:
    """Every page in every look."""
    addresses = pages_of(*audited(product))
    signed_in = Visitor(product, browser.new_context(), "analyst").page.context.storage_state()
    for look, width, scheme in LOOKS:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, storage_state=signed_in
        )
        page = context.new_page()
        for name, address in addresses.items():
            page.goto(product.address + address)
            if look == "print":
                page.emulate_media(media="print")
            settle(page)
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
        context.close()


def main() -> None:
    """Start a copy, take the pictures, stop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "screenshots")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cps-") as scratch, sync_playwright() as playwright:
        Path(scratch).chmod(0o711)
        var, port = Path(scratch) / "var", free_port()
        process = start_product(var, port, Path(scratch) / "said")
        try:
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(QUIET))
            shoot(Product(f"http://127.0.0.1:{port}", var), browser, folder)
            browser.close()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    print(f"The pictures are in {folder}.")


if __name__ == "__main__":
    main()
