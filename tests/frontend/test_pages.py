"""Templates and what they are filled with, without a database: structure, escaping, forms there and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.datastructures import FormData

from backend.errors import InputProblem, NotFound
from backend.people.service import Principal
from frontend.pages import audit_form, audit_view, cost_view, dataset_view, roles_form, words
from frontend.pages.help import read_glossary
from frontend.pages.rendering import ENVIRONMENT, FILES, FOLDER, page, static
from frontend.pages.selection import ALL, Selection, attribute_sets, group_pages
from tests.frontend.facts import HOSTILE
from worker.engine.datasets.role_set import suggest_roles
from worker.engine.datasets.roles import check_roles
from worker.engine.results import EVERYONE, AuditFacts, GroupFacts, RunFacts, StatisticRow

ANALYST = Principal("p", "t", HOSTILE, "analyst", frozenset({"read", "run"}), "session")
AUDITOR = Principal("p", "t", "Auditor", "auditor", frozenset({"read"}), "session")


class Outline(HTMLParser):
    """What matters of a page: headings, ids, inline code, labels."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def check_page(text: str) -> None:
    """Laws of every page: one h1, a title, no inline script or style, unique ids, every control named, no hostile tag."""
    outline = Outline(text)
    assert len(outline.all("h1")) == 1
    assert re.search(r"<title>.+ · Counterpoise</title>", text, re.DOTALL)
    assert all(script.get("src") for script in outline.all("script"))
    assert not outline.all("style")
    for _, attributes in outline.tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
    ids = [attributes["id"] for _, attributes in outline.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    labelled = {attributes.get("for") for attributes in outline.all("label")}
    for tag in ("input", "select"):
        for control in outline.all(tag):
            spoken = control.get("aria-labelledby") or control.get("aria-label")
            named = control.get("id") in labelled or spoken or control.get("type") in ("hidden", "radio", "checkbox")
            assert named, control
    for attributes in (a for _, a in outline.tags):
        for name in str(attributes.get("aria-describedby") or "").split():
            assert name in ids, name
    assert "<script>alert" not in text
    assert any(a.get("class") == "skip" for a in outline.all("a"))


def request(path: str = "/") -> Any:
    return SimpleNamespace(url=SimpleNamespace(path=path), query_params={})


def render(template: str, person: Principal | None = ANALYST, **context: Any) -> str:
    text = bytes(page(request(), template, person, "audits", **context).body).decode()
    check_page(text)
    return text


def column(
    name: str, kind: str, values: list[str], role: str, distinct: int | None = None, **more: Any
) -> dict[str, Any]:
    shown = [{"value": value, "label": value, "count": 10} for value in values]
    low, high = (0.0, 90.0) if kind == "number" else (None, None)
    base = {"name": name, "label": name, "type": kind, "missing": 0, "distinct": distinct or len(values)}
    return base | {"values": shown, "low": low, "high": high, "role": role, "reason": "Guessed."} | more


def make_dataset(**changes: Any) -> dict[str, Any]:
    columns = [
        column("age", "number", ["1", "2"], "protected", distinct=70),
        column(HOSTILE, "category", [HOSTILE, "Male"], "protected"),
        column("hours", "number", ["1"], "feature", distinct=90),
        column("id", "number", ["1"], "ignored", distinct=100),
        column("income", "category", ["<=50K", ">50K"], "target"),
    ]
    now = datetime.now(UTC)
    base = {
        "id": "d" * 32,
        "name": HOSTILE,
        "state": "profiled",
        "recipe_state": "read",
        "file_name": HOSTILE,
        "test_file_name": None,
        "rows": 100,
        "columns": columns,
        "notes": [{"column": HOSTILE, "message": HOSTILE}],
        "problem": None,
        "roles": None,
        "suggested_roles": suggest_roles({"columns": columns}),
        "summary": None,
        "receipt": None,
        "created_at": now,
        "expires_at": now + timedelta(days=90),
    }
    return base | changes


def dataset_page(dataset: dict[str, Any], person: Principal = ANALYST, groups: Any = (), **more: Any) -> str:
    found = dataset_view.context(dataset, {"rows": list(groups)}, person, **more)
    return render("dataset", person, **found)


def test_dataset_page_escapes_what_was_uploaded() -> None:
    text = dataset_page(make_dataset())
    assert "&lt;script&gt;" in text
    assert "Set the roles and count the groups" in text


@pytest.mark.parametrize("state", ["received", "refused", "erased"])
def test_dataset_page_in_every_state(state: str) -> None:
    problem = {"happened": "Row 3 has 4 cells.", "where": "In row 3.", "next": "Correct it."}
    dataset = make_dataset(state=state, columns=[], rows=None, problem=problem if state == "refused" else None)
    receipt = {"sha256": "ab", "key_destroyed": True, "erased_at": "2026-01-02T03:04:05+00:00"}
    dataset |= {"receipt": receipt if state == "erased" else None, "suggested_roles": None, "recipe_state": "ready"}
    text = dataset_page(dataset)
    assert "<form" not in text.split("</header>")[1] or state != "erased"
    assert "New audit of this dataset" not in text
    assert ("2 Jan 2026, 03:04 UTC" in text) == (state == "erased")
    assert ("Row 3 has 4 cells. In row 3. Correct it." in text) == (state == "refused")


def test_groups_say_what_cannot_be_judged() -> None:
    roles, errors = check_roles(make_dataset()["suggested_roles"], make_dataset())
    assert roles is not None, errors
    group = {"train": 3, "validation": 1, "test": 2, "base_rate": 0.5, "smallest_detectable_cost": None}
    rows = [
        group | {"key": EVERYONE, "label": EVERYONE, "estimable": True, "reason": None},
        group | {"key": "a", "label": HOSTILE, "estimable": False, "reason": "n = 2: not enough to judge"},
    ]
    text = dataset_page(make_dataset(roles=roles.to_json(), recipe_state="ready"), groups=rows)
    assert "no: n = 2: not enough to judge" in text
    assert "1 group cannot be judged" in text


def test_a_reader_cannot_change_roles() -> None:
    text = dataset_page(make_dataset(), AUDITOR)
    assert "Set the roles" not in text
    assert "Erase" not in text
    assert all(
        "disabled" in select for select in Outline(text).all("select") if str(select["name"]).startswith("role.")
    )


def _filled(dataset: dict[str, Any], **changes: str) -> FormData:
    shown = roles_form.fields({"columns": dataset["columns"]}, dataset["roles"], dataset["suggested_roles"])
    pairs = [(f"role.{at}", found["role"]) for at, found in enumerate(shown["columns"])]
    if shown["target"]:
        pairs.append((shown["target"]["kind"], shown["target"]["chosen"]))
    pairs += [(f"cuts.{cut['position']}", cut["value"]) for cut in shown["cuts"]]
    pairs += [("intersections", pair["value"]) for pair in shown["pairs"] if pair["chosen"]]
    return FormData([*((name, value) for name, value in pairs if name not in changes), *changes.items()])


def test_the_form_of_roles_goes_there_and_back() -> None:
    dataset = make_dataset()
    form = _filled(dataset, intersections="0x1")
    body = roles_form.body_of(form, dataset)
    roles, errors = check_roles(body, dataset)
    assert roles is not None, errors
    assert roles.target.favourable == dataset["suggested_roles"]["target"]["favourable"]
    assert roles.intersections == (("age", HOSTILE),)
    assert roles.cuts["age"] == (25, 45, 65)
    stored = make_dataset(roles=roles.to_json())
    again = roles_form.body_of(_filled(stored), stored)
    assert check_roles(again, stored)[0] == roles


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cuts.0": "40 x"}, "cuts.0"),
        ({"role.4": "feature"}, "target"),
        ({"favourable": "no such value"}, "favourable"),
        ({"role.0": "feature", "role.1": "feature"}, "protected"),
    ],
)
def test_errors_of_roles_stand_at_their_field(changes: dict[str, str], field: str) -> None:
    dataset = make_dataset()
    form = _filled(dataset, **changes)
    body = roles_form.body_of(form, dataset)
    errors = [{"field": error.field, "message": error.message} for error in check_roles(body, dataset)[1]]
    placed, stray = roles_form.field_errors(errors, body, dataset)
    assert field in placed
    assert not stray
    problem = InputProblem("Nothing was stored.", errors)
    text = dataset_page(dataset, form=form, errors=placed, stray=stray, form_problem=problem)
    assert placed[field].split("'")[0].split("<")[0][:20] in text


def test_two_targets_are_marked_at_both() -> None:
    form = _filled(make_dataset(), **{"role.2": "target"})
    assert set(roles_form.many_of_one(form, make_dataset())) == {"role.2", "role.4"}


def test_the_form_of_an_audit_makes_a_good_question() -> None:
    from worker.engine import catalogue
    from worker.engine.audits.question import check_question

    body = audit_form.body_of(audit_form.start_values()) | {"dataset": "d" * 32}
    summary = {"units": 1000, "classes": 2, "features": 10}
    question, errors = check_question(
        body, summary=summary, methods=catalogue.METHODS, networks=catalogue.NETWORKS, run_limit=1000
    )
    assert question is not None, errors
    assert question.epsilons == (0.5, 1, 2, 4, 8)
    assert question.seeds == 5


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("epsilons", "0 1", "epsilons"),
        ("epsilons", "nan", "epsilons"),
        ("epsilons", "one", "epsilons"),
        ("delta", "0.5", "delta"),
        ("other_seeds", "0", "other_seeds"),
        ("training.clip", "-1", "training.clip"),
        ("training.epochs", "1.5", "training.epochs"),
        ("network.hidden", "64 x", "network.hidden"),
        ("network.kind", "transformer", "network.kind"),
        ("parameters.non-private.learning_rate", "no", "parameters.non-private.learning_rate"),
        ("parameters.dp-sgd.momentum", "1", "parameters.dp-sgd.momentum"),
        ("training.learning_rate", "0", "training.learning_rate"),
        ("training.optimizer", "lion", "training.optimizer"),
        ("network.activation", "sigmoid", "network.activation"),
    ],
)
def test_errors_of_an_audit_stand_at_their_field(name: str, value: str, place: str) -> None:
    from worker.engine import catalogue
    from worker.engine.audits.question import check_question

    values = audit_form.start_values() | {name: value}
    _, errors = check_question(
        audit_form.body_of(values),
        summary={"units": 1000, "classes": 2, "features": 10},
        methods=catalogue.METHODS,
        networks=catalogue.NETWORKS,
        run_limit=1000,
    )
    placed, stray = audit_form.field_errors([{"field": e.field, "message": e.message} for e in errors])
    assert place in placed
    assert not stray
    text = new_audit_page(values, placed)
    assert ('aria-invalid="true"' in text) or place == "network.kind"
    assert f'id="{words.slug(place)}-error" data-error="{place}">{placed[place][:12]}' in text.replace("&#39;", "'")


def test_the_form_offers_optimizer_and_activation_and_says_each_learning_rate() -> None:
    text = new_audit_page(audit_form.start_values(), {})
    outline = Outline(text)
    assert {select["name"] for select in outline.all("select")} == {"network.activation", "training.optimizer"}
    assert "Left empty: 0.1 with SGD, 0.002 with Adam." in text
    assert "Left empty: 0.5 with SGD, 0.005 with Adam." in text
    empty = {"training.learning_rate", "parameters.non-private.learning_rate"}
    assert {f["name"] for f in outline.all("input") if f.get("name") in empty and not f.get("value")} == empty


def test_a_wrong_setting_of_a_method_opens_its_fields() -> None:
    name = "parameters.dp-sgd-global.bound"
    text = new_audit_page(audit_form.start_values() | {name: "2"}, {name: "Bound must be at least the clip, 4."})
    opened = [
        piece.split("</summary>")[0]
        for piece in text.split("<details")[1:]
        if piece.startswith((' class="settings" open',))
    ]
    assert len(opened) == 1
    assert "DPSGD-Global" in opened[0]


def new_audit_page(values: dict[str, Any], errors: dict[str, str]) -> str:
    return render(
        "audit_new",
        dataset=make_dataset(),
        datasets=[make_dataset()],
        values=values,
        errors=errors,
        stray=[],
        problem=None,
        forecast={"runs": 30, "stacks": 5, "steps": 100, "seconds": 40.0, "memory_bytes": 4e8, "detectable": []},
        expert_open=True,
        delta_default="1e-6",
        delta_hint="Left empty, 1e-6.",
        **audit_form.catalogue_fields(),
    )


def make_audit_facts(groups: int = 12) -> AuditFacts:
    keys = [EVERYONE, *(f"race={HOSTILE}{at}" for at in range(groups))]
    told = tuple(GroupFacts(k, k, {} if k == EVERYONE else {"race": k}, 100, True, None) for k in keys)
    runs = []
    for seed in range(3):
        for method, epsilon in (("non-private", None), ("dp-sgd", 1.0), ("dp-sgd", 8.0)):
            statistics = tuple(
                StatisticRow(
                    key,
                    label,
                    "test",
                    50,
                    (40 - seed, 10 + seed) if label == 0 else (10, 40),
                    20.0,
                    9,
                    9,
                    25,
                    30,
                    5,
                    5,
                    10,
                    1,
                    2,
                )
                for key in keys
                for label in (0, 1)
            )
            runs.append(RunFacts(f"{method}{epsilon}{seed}", method, seed, epsilon, epsilon, "finished", statistics))
    return AuditFacts(told, tuple(runs), seeds_planned=3)


def make_audit(**changes: Any) -> dict[str, Any]:
    question = {"methods": ["dp-sgd"], "epsilons": [1.0, 8.0], "seeds": 3, "network": {"kind": "mlp", "hidden": [64]}}
    counts = {"total": 9, "finished": 9, "diverged": 0, "failed": 0, "waiting": 0, "training": 0, "stopped": 0}
    base = {"id": "a" * 32, "name": HOSTILE, "state": "finished", "question": question, "runs": counts, "claim": None}
    more = {"steps_done": 30, "steps_total": 30, "stop_requested": False, "started_at": None, "problem": None}
    return base | more | {"forecast": {"seconds": 60.0}} | changes


@pytest.mark.parametrize("state", ["planning", "queued", "running", "finished", "stopped", "failed"])
@pytest.mark.parametrize("query", [{}, {"group": f"race={HOSTILE}9", "view": "value", "metric": "loss", "page": "2"}])
def test_audit_page_in_every_state(state: str, query: dict[str, str]) -> None:
    audit, facts = make_audit(state=state), make_audit_facts()
    chosen = Selection.of(facts, query)
    left = audit_view.time_left(audit, datetime.now(UTC))
    text = render(
        "audit",
        stream={"id": "a" * 32, "source": "/api/v1/events?audit=a"},
        plotly={"script": "/assets/p.js", "style": "/assets/p.css", "style_ids": ["plotly.js-style-x"]},
        tab="cost",
        dataset=make_dataset(),
        claim=None,
        runs=[],
        runs_sentence="",
        audit=audit_view.shown(audit),
        sentence=audit_view.opening(audit, chosen.facts.sentence),
        progress=audit_view.progress(audit, left),
        may_run=True,
        **cost_view.context("a" * 32, state, facts, chosen),
    )
    assert ("progress-bar" in text) == (state in audit_view.ACTIVE)
    assert ("/resume" in text) == (state in ("stopped", "failed"))
    assert 'data-chart="group_costs"' in text


def test_selection_lives_in_the_url_and_forgives() -> None:
    facts = make_audit_facts()
    wild = {
        "metric": "x",
        "interval": "y",
        "method": HOSTILE,
        "epsilon": "nan",
        "group": "none",
        "by": "z",
        "page": "-4",
    }
    chosen = Selection.of(facts, wild)
    assert chosen.query() == ""
    assert chosen.epsilon == 1.0
    far = Selection.of(facts, {"group": f"race={HOSTILE}10"})
    assert f"race={HOSTILE}10" in far.groups
    assert far.groups[0] == EVERYONE
    assert Selection.of(facts, {"epsilon": "7"}).epsilon == 8.0


def test_groups_come_in_panels_of_eight_with_everyone_in_each() -> None:
    facts = make_audit_facts(20)
    pages = group_pages(facts.groups, ALL)
    assert [len(part) for part in pages] == [7, 7, 6]
    assert attribute_sets(facts.groups)[0] == ALL


def test_time_left_says_what_it_is_judged_by() -> None:
    now = datetime.now(UTC)
    early = make_audit(state="running", steps_done=1, steps_total=100, started_at=now - timedelta(seconds=9))
    assert audit_view.time_left(early, now).endswith("by the forecast.")
    later = make_audit(state="running", steps_done=50, steps_total=100, started_at=now - timedelta(seconds=120))
    assert audit_view.time_left(later, now) == "About 2 minutes left, by the pace so far."


def test_a_refused_upload_is_told_at_its_field_and_its_place() -> None:
    errors = [{"field": "file", "message": "The file is empty."}, {"row": 3, "column": HOSTILE, "message": "Too long."}]
    problem = InputProblem("Nothing was stored.", errors)
    text = render(
        "dataset_new",
        samples=[{"key": "adult", "title": "Adult", "help": "People, `sex` and more."}],
        limit=6e8,
        kinds="CSV or XLSX",
        accepted=".csv",
        days=90,
        values={"name": HOSTILE},
        errors={"file": "The file is empty."},
        problem=problem,
    )
    assert text.count("The file is empty.") == 2
    assert "row 3, column" in text
    render("error", problem=problem)


def test_error_pages_say_three_sentences() -> None:
    text = render("error", None, problem=NotFound("audit"))
    assert "There is no such audit here." in text
    assert "<nav" not in text


def test_no_script_is_long_and_imports_are_ours() -> None:
    scripts = [name for name in FILES if name.endswith(".js")]
    assert scripts
    for name in scripts:
        text = FILES[name].decode()
        assert text.count("\n") <= 150
        for imported in re.findall(r'from "(.+?)"|import "(.+?)"', text):
            assert f"js/{''.join(imported).removeprefix('./')}" in FILES


def test_every_template_compiles_and_every_static_name_exists() -> None:
    for path in (FOLDER / "templates").rglob("*.html"):
        ENVIRONMENT.get_template(str(path.relative_to(FOLDER / "templates")))
        for name in re.findall(r"static\('(.+?)'\)", path.read_text("utf-8")):
            assert static(name).endswith(name)


def test_glossary_has_the_words_of_the_product() -> None:
    used, avoided = read_glossary()
    named = {word for word, _ in used}
    assert {
        "dataset",
        "recipe",
        "group",
        "part",
        "audit",
        "method",
        "run",
        "stack",
        "baseline",
        "privacy cost",
    } <= named
    assert len(avoided) > 3
    assert Path(FOLDER.parent / "docs" / "glossary.md").is_file()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (words.figure(1e-6), "1e-6"),
        (words.figure(65536), "65,536"),
        (words.span(3), "about 5 seconds"),
        (words.span(61), "about 1 minute"),
        (words.span(7200), "about 2 hours"),
        (words.size(600_000_000), "600 MB"),
        (words.percent(None), "—"),
        (words.true_minus("interval -1.4 to 2 of dp-sgd-2"), "interval −1.4 to 2 of dp-sgd-2"),
        (words.listed(["a", "b", "c"]), "a, b and c"),
        (words.ticks("`<x>`"), "<code>&lt;x&gt;</code>"),
        (words.epsilon_span([0.5, 8]), "0.5 to 8"),
    ],
)
def test_words(given: str, text: str) -> None:
    assert given == text
