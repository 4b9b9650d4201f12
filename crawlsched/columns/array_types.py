"""Array types: the kinds of arrays that signatures name, each defined once."""

import numpy as np
import numpy.typing as npt

__all__ = ["BoolArray", "ColumnArray", "FloatArray", "IndexArray", "LevelArray"]

#: Numbers: rates, times in seconds, crawl values.
FloatArray = npt.NDArray[np.float64]
#: Row numbers of pages, hosts, sources.
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
#: Signed numbers of 4 bytes, for example the level, the place or the host of each page.
LevelArray = npt.NDArray[np.int32]
#: Page numbers in columns, 4 bytes each.
ColumnArray = npt.NDArray[np.uint32]
