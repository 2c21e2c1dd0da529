"""THE ONE PLACE where a person may choose: plain tuples, in the order of the screen. Torch-free."""

from __future__ import annotations

from worker.engine.datasets.formats.arrow import ARROW
from worker.engine.datasets.formats.base import Format
from worker.engine.datasets.formats.csv import CSV
from worker.engine.datasets.formats.gzip import GZIP
from worker.engine.datasets.formats.parquet import PARQUET
from worker.engine.datasets.formats.xlsx import XLSX
from worker.engine.datasets.formats.zip import ZIP
from worker.engine.methods.base import Method
from worker.engine.methods.direction_error import DIRECTION_ERROR
from worker.engine.methods.dp_sgd import DP_SGD
from worker.engine.methods.dp_sgd_adaptive import DP_SGD_ADAPTIVE
from worker.engine.methods.dp_sgd_f import DP_SGD_F
from worker.engine.methods.dp_sgd_global import DP_SGD_GLOBAL
from worker.engine.methods.dp_sgd_global_adapt import DP_SGD_GLOBAL_ADAPT
from worker.engine.methods.fairness_lens import FAIRNESS_LENS
from worker.engine.methods.fairness_lens_original import FAIRNESS_LENS_ORIGINAL
from worker.engine.methods.magnitude_error import MAGNITUDE_ERROR
from worker.engine.methods.non_private import NON_PRIVATE
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.auc import AUC
from worker.engine.metrics.balanced_accuracy import BALANCED_ACCURACY
from worker.engine.metrics.base import Metric
from worker.engine.metrics.brier_score import BRIER_SCORE
from worker.engine.metrics.calibration_error import CALIBRATION_ERROR
from worker.engine.metrics.false_negative_rate import FALSE_NEGATIVE_RATE
from worker.engine.metrics.false_positive_rate import FALSE_POSITIVE_RATE
from worker.engine.metrics.loss import LOSS
from worker.engine.metrics.precision import PRECISION
from worker.engine.metrics.selection_rate import SELECTION_RATE
from worker.engine.metrics.true_positive_rate import TRUE_POSITIVE_RATE
from worker.engine.params import NetworkKind

METHODS: tuple[Method, ...] = (
    NON_PRIVATE,
    DP_SGD,
    DP_SGD_ADAPTIVE,
    DP_SGD_F,
    FAIRNESS_LENS,
    DP_SGD_GLOBAL,
    DP_SGD_GLOBAL_ADAPT,
    FAIRNESS_LENS_ORIGINAL,
    MAGNITUDE_ERROR,
    DIRECTION_ERROR,
)

NETWORKS: tuple[NetworkKind, ...] = (
    NetworkKind(
        key="logistic",
        title="Logistic regression",
        help="One weight per feature; easy to read, and the least to hide.",
        hidden=(),
        module="worker.engine.networks.logistic",
    ),
    NetworkKind(
        key="mlp",
        title="Multilayer perceptron",
        help="Hidden layers of the widths you give; catches what a straight line cannot.",
        hidden=(64,),
        module="worker.engine.networks.mlp",
    ),
)

METRICS: tuple[Metric, ...] = (
    ACCURACY,
    BALANCED_ACCURACY,
    LOSS,
    BRIER_SCORE,
    CALIBRATION_ERROR,
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    FALSE_NEGATIVE_RATE,
    FALSE_POSITIVE_RATE,
    PRECISION,
    AUC,
)

FORMATS: tuple[Format, ...] = (
    PARQUET,
    ARROW,
    GZIP,
    XLSX,
    ZIP,
    CSV,
)
"""In the order in which they are asked; CSV recognises whatever is left."""
