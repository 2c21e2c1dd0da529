"""Questions that cannot be asked, beyond those of test_plan.py."""

from __future__ import annotations

import pytest

from worker.engine.audits.question import check_question
from worker.engine.catalogue import METHODS, NETWORKS


@pytest.mark.parametrize("field", ["training", "network", "parameters"])
@pytest.mark.parametrize("empty", [[], "", 0, False])
def test_an_empty_value_of_the_wrong_kind_is_an_error_and_not_the_default(field: str, empty: object) -> None:
    body = {"methods": ["dp-sgd"], "epsilons": [1], "seeds": 1, field: empty}
    summary = {"units": 1000, "classes": 2, "features": 3}
    _, errors = check_question(body, summary=summary, methods=METHODS, networks=NETWORKS, run_limit=100)
    assert [error.field for error in errors] == [field]


@pytest.mark.parametrize("delta", [1e-300, 1e-13, 0, -1])
def test_a_delta_that_no_accountant_can_follow_is_refused_at_the_field(delta: float) -> None:
    body = {"methods": ["dp-sgd"], "epsilons": [1], "seeds": 1, "delta": delta}
    summary = {"units": 1000, "classes": 2, "features": 3}
    _, errors = check_question(body, summary=summary, methods=METHODS, networks=NETWORKS, run_limit=100)
    assert [(error.field, error.message) for error in errors] == [("delta", "Delta must lie between 1e-12 and 1.")]
