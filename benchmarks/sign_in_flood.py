"""What a flood of sign-ins does to those who are signed in: p95 of their pages before and during. Never pass or fail.

python -m benchmarks.sign_in_flood [--json] [--requests 2000] [--at-once 20] [--readers 4]

A fresh copy of the product on loopback; wrong passwords for many accounts from one address. The bound of the product is
300 ms. ``--json`` prints one last line of JSON.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import httpx
import psutil

from tests.journeys.conftest import Product, free_port, start_product

THINK_SECONDS = 0.1
PAGES = ("/", "/datasets", "/me", "/team")


def flood(port: int, requests: int, at_once: int, answer: multiprocessing.Queue[dict[str, object]]) -> None:
    """In a process of its own: every request on a connection that is kept."""
    local = threading.local()

    def one(number: int) -> int:
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        body = urlencode({"email": f"p{number % 97}@example.org", "password": "wrong" * 5})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        local.connection.request("POST", "/sign-in", body, headers)
        found = local.connection.getresponse()
        found.read()
        return int(found.status)

    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        codes = Counter(pool.map(one, range(requests)))
    answer.put({"seconds": time.perf_counter() - began, "codes": {str(code): count for code, count in codes.items()}})


def read(client: httpx.Client, stop: threading.Event, times: list[float]) -> None:
    """Opens page after page until told to stop; milliseconds each."""
    while not stop.is_set():
        for page in PAGES:
            began = time.perf_counter()
            client.get(page).raise_for_status()
            times.append(1000 * (time.perf_counter() - began))
            time.sleep(THINK_SECONDS)


def reading(product: Product, cookies: httpx.Cookies, readers: int, busy: object) -> list[float]:
    """Milliseconds of every page that ``readers`` opened while ``busy`` ran."""
    stop, times = threading.Event(), []
    clients = [httpx.Client(base_url=product.address, cookies=cookies, timeout=120) for _ in range(readers)]
    threads = [threading.Thread(target=read, args=(client, stop, times)) for client in clients]
    for thread in threads:
        thread.start()
    busy()  # type: ignore[operator]  # a function without arguments
    stop.set()
    for thread in threads:
        thread.join()
    return times


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def measure(product: Product, pid: int, options: argparse.Namespace) -> dict[str, object]:
    port = int(product.address.rpartition(":")[2])
    with httpx.Client(base_url=product.address, headers={"Sec-Fetch-Site": "same-origin"}) as client:
        client.post(product.link("analyst").removeprefix(product.address))
        cookies = client.cookies
        while [one for one in client.get("/api/v1/datasets").json()["items"] if one["state"] == "received"]:
            time.sleep(0.2)  # until the samples are read, which is work of its own
    quiet = reading(product, cookies, options.readers, lambda: time.sleep(8))
    answer: multiprocessing.Queue[dict[str, object]] = multiprocessing.Queue()
    process = multiprocessing.Process(target=flood, args=(port, options.requests, options.at_once, answer))

    def run() -> None:
        process.start()
        process.join()

    web = next(one for one in psutil.Process(pid).children(recursive=True) if "backend.app:create_app" in one.cmdline())
    before = sum(web.cpu_times()[:2])
    loud = reading(product, cookies, options.readers, run)
    spent = sum(web.cpu_times()[:2]) - before
    return {
        "p95_ms_quiet": round(p95(quiet), 1),
        "p95_ms_flood": round(p95(loud), 1),
        "pages_quiet": len(quiet),
        "pages_flood": len(loud),
        "web_cpu_seconds": round(spent, 2),
        "flood": answer.get(timeout=10),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--readers", type=int, default=4, help="each pauses a tenth of a second between pages")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cpb-") as scratch:
        Path(scratch).chmod(0o711)
        var, port = Path(scratch) / "var", free_port()
        process = start_product(var, port, Path(scratch) / "said")
        try:
            found = measure(Product(f"http://127.0.0.1:{port}", var), process.pid, options)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    print(f"p95 of a signed-in page: {found['p95_ms_quiet']} ms, during the flood {found['p95_ms_flood']} ms.")
    print(f"{found['pages_flood']} pages were read; the flood: {found['flood']}.")
    print(f"The web process worked for {found['web_cpu_seconds']} s of processor time meanwhile.")
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
