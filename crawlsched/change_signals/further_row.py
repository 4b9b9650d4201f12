"""What a source beside a page's first one announced of it, as a row that a store keeps."""

from __future__ import annotations

__all__ = ["FurtherRow"]

#: n_signals, n_signals_total, signalled_since, n_heard, signalled_at (None: never), true_signals and false_signals.
FurtherRow = tuple[int, int, float, int, float | None, float, float]
