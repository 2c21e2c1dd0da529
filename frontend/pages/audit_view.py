"""What the audit pages say, made from what the service gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from frontend.charts.base import epsilon_text
from frontend.pages import words
from frontend.pages.dataset_view import problem_of
from frontend.pages.selection import titles
from worker.engine import catalogue
from worker.engine.facts.costs import BASELINE

Audit = Mapping[str, Any]
FEWEST_SECONDS = 2.0
TRUSTED_SHARE = 0.1
"""Share of the steps after which the pace is believed more than the forecast."""

ACTIVE = ("planning", "queued", "running")


def shown(audit: Audit) -> dict[str, Any]:
    """An audit with the words that stand for it in lists and at the top of its page."""
    question = audit.get("question") or {}
    named = titles()
    network = question.get("network") or {}
    kinds = {kind.key: kind.title for kind in catalogue.NETWORKS}
    hidden = " × ".join(str(width) for width in network.get("hidden") or ())
    return {
        **audit,
        "state_words": words.STATES.get(audit["state"], audit["state"]),
        "methods": [named.get(key, key) for key in question.get("methods") or () if key != BASELINE],
        "epsilons": words.epsilon_span(list(question.get("epsilons") or ())),
        "seeds": question.get("seeds"),
        "network": " ".join([kinds.get(network.get("kind", ""), "").lower(), hidden]).strip(),
        "problem": problem_of(audit.get("problem")),
    }


def list_sentence(items: list[dict[str, Any]], filtered: bool) -> str:
    """What the list says at its top: what runs, what waits."""
    if not items:
        return "Nothing matches this choice." if filtered else "No audit yet."
    running = [item for item in items if item["state"] in ACTIVE]
    unfinished = [item for item in items if item["state"] in ("stopped", "failed")]
    parts = []
    if running:
        parts.append(f"{len(running)} under way")
    if unfinished:
        parts.append(f"{len(unfinished)} stopped or failed")
    done = sum(item["state"] == "finished" for item in items)
    if done:
        parts.append(f"{done} finished")
    return f"{words.plural(len(items), 'audit')}: {words.listed(parts)}."


def opening(audit: Audit, sentence: str) -> str:
    """The sentence at the top of an audit."""
    state = audit["state"]
    if state == "planning":
        return "The noise that each epsilon needs is being found."
    if state == "erased":
        return "This audit was erased."
    return words.true_minus(sentence)


def progress(audit: Audit, left: str) -> dict[str, Any]:
    """How far an audit is, and honestly how long it will still take."""
    runs = audit["runs"]
    total, finished = runs["total"], runs["finished"] + runs["diverged"]
    share = audit["steps_done"] / audit["steps_total"] if audit["steps_total"] else 0.0
    state = audit["state"]
    return {
        "share": min(max(share, 0.0), 1.0),
        "words": _progress_words(state, finished, total),
        "left": left,
        "resumable": state in ("stopped", "failed"),
    }


def time_left(audit: Audit, now: datetime) -> str:
    """How long it will still take, and what that is judged by: the forecast at first, then the pace so far."""
    if audit["state"] == "planning":
        return "This takes seconds for an epsilon that was never asked for, and none for one that was."
    done, total = audit["steps_done"], audit["steps_total"]
    share = done / total if total else 0.0
    pace = seconds_left(audit, now) if share >= TRUSTED_SHARE else None
    if pace is not None:
        return f"{words.span(pace).capitalize()} left, by the pace so far."
    forecast = (audit.get("forecast") or {}).get("seconds")
    if forecast is None:
        return "The time left is known once the first steps are done."
    return f"{words.span(forecast * (1 - share)).capitalize()} left, by the forecast."


def seconds_left(audit: Audit, now: datetime) -> float | None:
    """By the pace since the audit began to train; None before there is one, or once it has ended."""
    done, total, started = audit["steps_done"], audit["steps_total"], audit.get("started_at")
    if audit["state"] != "running" or not done or not started or done >= total:
        return None
    spent = (now - started).total_seconds()
    return spent / done * (total - done) if spent > FEWEST_SECONDS else None


def _progress_words(state: str, finished: int, total: int) -> str:
    if state == "planning":
        return f"Finding the noise for {words.plural(total, 'run')}; each is checked by a second accountant."
    if state == "queued":
        return f"Waiting for a worker; {words.plural(total, 'run')} to train."
    if state == "running":
        return f"{finished:,} of {words.plural(total, 'run')} finished."
    return (
        f"This audit {'was stopped' if state == 'stopped' else 'failed'} with {finished:,} of {total:,} runs finished."
    )


def claim(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The claim box: unit, adjacency, delta, the three epsilons with their reasons."""
    if not found:
        return None
    mechanism = found.get("mechanism") or {}
    three: Mapping[str, Mapping[str, Any]] = found.get("epsilons") or {}
    note = f" {found['delta_note']}" if found.get("delta_note") else ""
    others: list[dict[str, Any]] = [
        {"title": "In one sentence", "text": words.small(str(found.get("sentence") or ""))},
        {"title": "Mechanism", "text": _mechanism(mechanism)},
        {"title": "Released in each step", "text": _releases(found.get("points") or ())},
        {"title": "Accounting", "text": found.get("accounting")},
        {"title": "Groups in training", "text": _groups_in_training(found.get("groups_in_training"))},
        {"title": "Without a claim", "text": _references(found.get("references") or {})},
        {"title": "Covered", "text": found.get("covered")},
        {"title": "Not covered", "text": "; ".join(found.get("not_covered") or ())},
    ]
    return {
        "unit": f"one {found['unit']}, of {found['units']:,} in the training part",
        "adjacency": found["adjacency"],
        "delta": words.small(f"{found['delta']:g}; times n: {found['delta_times_units']:.2g}.{note}"),
        "epsilons": [{"title": f"Epsilon: {one['what']}", "text": _epsilon_words(one)} for one in _ordered(three)],
        "others": [row for row in others if row["text"]],
        "open": list(found.get("open_items") or ()),
    }


def _ordered(three: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The three epsilons from the narrowest claim to the widest, whatever order they were stored in."""
    order = ("one_run", "choice_paid", "all_runs")
    return [three[key] for key in (*order, *(key for key in three if key not in order)) if key in three]


def _epsilon_words(one: Mapping[str, Any]) -> str:
    """One of the three epsilons: its figures, or none and why."""
    if "values" in one:
        named = titles()
        by_method: dict[str, list[str]] = {}
        for point in one["values"]:
            by_method.setdefault(point["method"], []).append(epsilon_text(point["spent"]) if point["spent"] else "—")
        if not by_method:
            return "not known yet"
        return "; ".join(f"{named.get(key, key)}: {', '.join(spent)} spent" for key, spent in by_method.items())
    text = "None" if one.get("value") is None else epsilon_text(one["value"])
    if one.get("runs"):
        text += f", for {words.plural(one['runs'], 'private run')}"
    if one.get("reason"):
        text += f". {one['reason'][:1].upper()}{one['reason'][1:].rstrip('.')}"
    if one.get("options_looked_at"):
        text += f". {words.plural(one['options_looked_at'], 'option')} looked at"
    if one.get("forecast") is not None:
        text += f". It would be about {epsilon_text(one['forecast'])}, {one['forecast_what']}"
    return text + "."


def _releases(points: Sequence[Mapping[str, Any]]) -> str:
    """What each method releases besides the sum, once a method."""
    named = titles()
    by_method: dict[str, str] = {}
    for point in points:
        for event in point.get("events") or ():
            whats = [release["what"] for release in event.get("releases") or ()]
            by_method.setdefault(named.get(point["method"], point["method"]), words.listed(whats))
    return "; ".join(f"{title}: {what}" for title, what in by_method.items() if what)


def _groups_in_training(found: Mapping[str, Any] | None) -> str:
    if not found:
        return "No method looks at a protected attribute while it trains."
    named = titles()
    column = f" ({found['column']}, {found['count']} values)" if found.get("column") else ""
    looking = words.listed([named.get(key, key) for key in found["methods"]])
    return f"{looking}: training looks at the first protected column of every training row{column}."


def _references(found: Mapping[str, Any]) -> str:
    if not found.get("methods"):
        return ""
    named = titles()
    return f"{words.listed([named.get(key, key) for key in found['methods']])}. {found['note']}"


def _mechanism(found: Mapping[str, Any]) -> str:
    if not found:
        return ""
    return (
        f"{found['sampling']}; sampling probability {found['sampling_probability']:.3g}, {found['steps']:,} steps, "
        f"expected batch {found['expected_batch_size']:.4g}; optimizer {found.get('optimizer', 'sgd')}."
    )


def runs(rows: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the tab Runs."""
    named = titles()
    return [
        {
            **row,
            "method_title": named.get(row["method"], row["method"]),
            "noise": row.get("noise_multiplier"),
            "spent_text": epsilon_text(row["epsilon_spent"]) if row.get("epsilon_spent") is not None else "—",
            "check": _check(row.get("accountant_check")),
        }
        for row in rows
    ]


def _check(found: Mapping[str, Any] | None) -> str:
    """The second accountant's bound."""
    if not found:
        return "—"
    bound = found.get("rdp")
    return epsilon_text(bound) if isinstance(bound, int | float) else "—"


def runs_sentence(rows: list[dict[str, Any]]) -> str:
    """What the tab Runs says at its top."""
    if not rows:
        return "No run is planned yet."
    states: dict[str, int] = {}
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + 1
    return (
        f"{words.plural(len(rows), 'run')}: {words.listed([f'{count:,} {state}' for state, count in states.items()])}."
    )
