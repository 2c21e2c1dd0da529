"""All charts. Order is order on the screen."""

from __future__ import annotations

from frontend.charts.base import Chart
from frontend.charts.costs_at_epsilon import COSTS_AT_EPSILON
from frontend.charts.group_costs import GROUP_COSTS

CHARTS: tuple[Chart, ...] = (GROUP_COSTS, COSTS_AT_EPSILON)
