"""Which layout of a model is the fastest on so many GPUs, and why the others are not."""

from triosim.search.found import OUTCOMES, Ranked, SearchResult
from triosim.search.run import Limits, search
from triosim.search.space import Space

__all__ = ["OUTCOMES", "Limits", "Ranked", "SearchResult", "Space", "search"]
