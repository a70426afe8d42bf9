"""Published runs against predictions: tables with their sources, and the comparison."""

from triosim.validation.bubbles import bubble_rates
from triosim.validation.compare import (
    COLUMNS,
    QUANTITIES,
    STACKS,
    compare,
    compare_rows,
    summarise,
    worst,
)
from triosim.validation.folder import published_folder
from triosim.validation.predict import Prediction, predict, predict_rows, uncalibrated
from triosim.validation.tables import (
    LeftOut,
    Row,
    Source,
    Target,
    load_source,
    rows_of,
    source_names,
)

__all__ = [
    "COLUMNS", "QUANTITIES", "STACKS", "LeftOut", "Prediction", "Row", "Source", "Target",
    "bubble_rates", "compare", "compare_rows", "load_source", "predict", "predict_rows",
    "published_folder", "rows_of", "source_names", "summarise", "uncalibrated", "worst",
]  # fmt: skip
