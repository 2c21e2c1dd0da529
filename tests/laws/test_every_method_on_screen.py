"""Wherever a person may meet a method, every method of the catalogue is there: form, REST, help, chart, table."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from backend.catalogue.routes import whole
from backend.catalogue.schemas import Catalogue
from frontend.charts.base import CostFacts, View
from frontend.charts.catalogue import CHARTS
from frontend.charts.theme import dash, hue
from frontend.pages import audit_form
from frontend.pages.selection import titles
from tests.builders import make_facts
from tests.frontend.test_pages import new_audit_page
from worker.engine import catalogue
from worker.engine.audits.question import BASELINE, Question, check_question
from worker.engine.catalogue import METHODS
from worker.engine.facts.costs import cost_rows
from worker.engine.methods.base import Method
from worker.engine.results import AuditFacts

EVERY = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.key)
CHOSEN = pytest.mark.parametrize("method", [m for m in METHODS if m.key != BASELINE], ids=lambda method: method.key)
SUMMARY = {"units": 5000, "classes": 2, "features": 10}


def ask(body: dict[str, Any]) -> tuple[Question | None, Any]:
    return check_question(body, summary=SUMMARY, methods=METHODS, networks=catalogue.NETWORKS, run_limit=1000)


def values_with(method: Method, **changes: str) -> dict[str, Any]:
    private = [method.key] if method.private else ["dp-sgd", method.key]
    return audit_form.start_values() | {"methods": private} | changes


@EVERY
def test_rest_offers_it_with_its_parameters(method: Method) -> None:
    shown = Catalogue(**whole(SimpleNamespace()))  # type: ignore[arg-type] # the asker is not looked at
    [found] = [entry for entry in shown.methods if entry.key == method.key]
    assert (found.title, found.help, found.private) == (method.title, method.help, method.private)
    assert [param.key for param in found.parameters] == [param.key for param in method.params]


@EVERY
def test_the_form_shows_it_with_a_field_for_each_parameter(method: Method) -> None:
    text = new_audit_page(values_with(method), {})
    assert f'value="{method.key}"' in text
    for param in method.params:
        assert f'name="parameters.{method.key}.{param.key}"' in text


@CHOSEN
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_form_asks_a_good_question_with_it(method: Method, optimizer: str) -> None:
    body = audit_form.body_of(values_with(method, **{"training.optimizer": optimizer})) | {"dataset": "d"}
    question, errors = ask(body)
    assert question is not None, errors
    assert method.key in (*question.methods, *question.references)
    assert (method.key in question.methods) is method.private
    given = question.parameters[method.key]
    assert {param.key for param in method.params} <= given.keys()
    assert given["learning_rate"] == {"sgd": 0.1, "adam": 0.002}[optimizer]


@CHOSEN
def test_a_wrong_parameter_is_told_at_its_field_of_the_form(method: Method) -> None:
    for param in method.params:
        name = f"parameters.{method.key}.{param.key}"
        _, errors = ask(audit_form.body_of(values_with(method, **{name: f"{param.high * 2 + 1:g}"})) | {"dataset": "d"})
        placed, stray = audit_form.field_errors([{"field": e.field, "message": e.message} for e in errors])
        assert name in placed
        assert not stray


def facts_of(method: Method) -> AuditFacts:
    """An audit of DP-SGD, called after this method; without a claim its runs have no epsilon."""
    made = make_facts(epsilons=(1.0, 8.0) if method.private else (1.0,))

    def renamed(run: Any) -> Any:
        if run.method != "dp-sgd":
            return run
        none = {} if method.private else {"epsilon_asked": None, "epsilon_spent": None}
        return replace(run, method=method.key, **none)

    return replace(made, runs=tuple(renamed(run) for run in made.runs), measurements=())


@CHOSEN
def test_charts_and_tables_show_it(method: Method) -> None:
    from frontend.charts.cost_table import reference_table

    rows = tuple(cost_rows(facts_of(method), catalogue.METRICS[0], "seeds"))
    facts = CostFacts(rows, "accuracy", "Accuracy", "higher", True, "seeds", titles(), 5, "")
    own = tuple(row for row in rows if row.method == method.key)
    assert all(row.cost is not None for row in own)
    assert hue(method.key, "light") != hue(method.key, "dark")
    assert dash(method.key)
    if not method.private:
        table = reference_table(facts, own, "References")
        assert {row[0].text for row in table.rows} == {method.title}
        return
    groups = tuple(dict.fromkeys(row.group for row in rows))
    for chart in CHARTS:
        view = View(method=method.key, groups=groups, epsilon=1.0)
        assert chart.figure(facts, view)["data"]
        assert method.title in chart.table(facts, view).caption
