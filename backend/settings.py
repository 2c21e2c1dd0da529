"""Settings of web and worker: built once, from the environment. Each has a type, a default and a help line."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

SAMPLE_SECRET = "change-me"  # noqa: S105 - refused in production, that is its purpose


class Settings(BaseSettings):
    """Read from environment variables of the same name in capitals (``DATABASE_URL`` ...)."""

    model_config = SettingsConfigDict(env_prefix="", extra="ignore", frozen=True)

    mode: Literal["demo", "production"] = Field(
        "production", description="`demo` on a laptop; anything else is production."
    )
    database_url: str = Field(description="PostgreSQL 15 or newer, postgresql+psycopg://…")
    redis_url: str = Field(description="Redis or Valkey: redis://… or redis+socket:///path")
    storage_url: str = Field("file://var/files", description="Any fsspec URL: file://, s3://, gs://")
    secret_key: str = Field(
        SAMPLE_SECRET, description="Master key; wraps the key of each file. At least 32 characters."
    )
    base_url: str = Field("http://127.0.0.1:8000", description="Address people use; decides cookie flags and links.")
    team_name: str = Field("Fairness", description="Name of the first team.")
    temporary_folder: Path = Field(
        Path("var/tmp"), description="Where a child process reads an upload; cleaned at start."
    )

    smtp_url: str = Field(
        "",
        description="Mail server for invitations and resets: smtp://user:password@host:587 (STARTTLS), smtps://…:465 (TLS), "
        "smtp+plain://… (neither). Empty: links are shown to the admin.",
    )
    mail_from: str = Field("", description="Sender of these mails; needed with SMTP_URL.")
    oidc_issuer: str = Field(
        "", description="Issuer of OpenID Connect, as its discovery document says it; empty: none."
    )
    oidc_client_id: str = Field("", description="Client id there. Register BASE_URL/sign-in/oidc/callback.")
    oidc_client_secret: str = Field("", description="Client secret there; empty for a public client.")
    oidc_title: str = Field("Single sign-on", description="Words on the button that leads there.")
    oidc_newcomers: Literal["", "analyst", "auditor"] = Field(
        "", description="Role of people who come from there without an invitation; empty: they are refused."
    )
    sign_in_failures: int = Field(
        10, ge=1, description="Failed sign-ins of one account until it is locked for a while."
    )
    sign_in_minutes: float = Field(15, gt=0, description="How long that lasts, and how long failures are counted.")
    session_days: float = Field(14, gt=0, le=400, description="Days after which a browser has to sign in again.")
    guesses_per_minute: int = Field(
        300, ge=1, description="Requests of one address that find nothing or nobody, until it has to wait."
    )

    train_device: Literal["cpu", "cuda"] = Field("cpu", description="Kernel that new stacks are planned for.")
    train_threads: int = Field(2, ge=1, le=256, description="Threads of one stack; part of its plan.")
    seconds_per_run_step: float = Field(
        0.0002, gt=0, description="First guess for forecasts before anything was measured."
    )

    upload_limit_bytes: int = Field(600_000_000, description="Largest upload.")
    table_limit_rows: int = Field(5_000_000, description="Most rows of a table.")
    table_limit_columns: int = Field(2_000, description="Most columns of a table.")
    reader_memory_bytes: int = Field(3_000_000_000, description="Memory of the child process that reads an upload.")
    reader_seconds: float = Field(120, description="Time of the child process that reads an upload.")
    reader_unpacked_bytes: int = Field(2_000_000_000, description="Most bytes that a packed upload may unpack to.")
    reader_unpack_ratio: int = Field(200, description="Most times its size that a packed upload may grow, past 10 MB.")
    reader_output_bytes: int = Field(4_000_000_000, description="Largest file that the reading child may write.")
    upload_days: int = Field(90, description="Days after which an upload expires.")
    run_limit: int = Field(20_000, description="Most runs of one audit.")

    withheld_below: int = Field(10, description="Groups with fewer rows in the part are withheld.")
    estimable_rows: int = Field(30, description="Rows of the part from which a group can be estimated.")
    estimable_per_label: int = Field(5, description="Rows per label that a metric needs.")

    lease_seconds: float = Field(15, description="How long a claimed job stays claimed without a sign of life.")
    sweep_seconds: float = Field(3, description="How often workers look for jobs that were lost.")
    resend_seconds: float = Field(10, description="A job asked for and not claimed is sent again after this.")
    attempts: int = Field(4, description="Claims after which a job that keeps dying is given up.")

    @model_validator(mode="after")
    def _no_sample_secret_in_production(self) -> Settings:
        if self.mode == "production" and (self.secret_key == SAMPLE_SECRET or len(self.secret_key) < 32):
            raise ValueError("SECRET_KEY is the sample one or shorter than 32 characters. Set it to a random string.")
        return self

    @model_validator(mode="after")
    def _whole_groups(self) -> Settings:
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("OIDC_ISSUER is set and OIDC_CLIENT_ID is not. Set both, or neither.")
        if self.oidc_issuer and self.mode == "production" and not self.oidc_issuer.startswith("https://"):
            raise ValueError("OIDC_ISSUER must begin with https:// in production. Set the issuer's own address.")
        if self.smtp_url and not self.smtp_url.startswith(("smtp://", "smtps://", "smtp+plain://")):
            raise ValueError(
                "SMTP_URL must begin with smtp://, smtps:// or smtp+plain://. Set it so, or leave it empty."
            )
        if self.smtp_url and "@" not in self.mail_from:
            raise ValueError("SMTP_URL is set and MAIL_FROM is not an e-mail address. Set both, or neither.")
        return self

    @cached_property
    def cookie_secure(self) -> bool:
        return self.base_url.startswith("https://")
