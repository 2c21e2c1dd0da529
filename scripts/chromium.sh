#!/bin/sh
# Makes sure that there is a Chromium for the journeys, or says what to install. Never skips silently.
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
playwright_has_one='
import pathlib, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    sys.exit(not pathlib.Path(playwright.chromium.executable_path).exists())
'
if "$python" -c "$playwright_has_one" 2>/dev/null; then exit 0; fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Debian's chromium for the browser journeys …"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; then exit 0; fi
fi
echo "Installing Playwright's Chromium for the browser journeys …"
if "$python" -m playwright install chromium; then exit 0; fi
echo "There is no Chromium, and it could not be installed. The browser journeys need one." >&2
echo "Install the package chromium (Debian, Ubuntu: sudo apt-get install chromium), then run make test again." >&2
exit 1
