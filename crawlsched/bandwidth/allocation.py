"""Allocation: how a bandwidth is divided among pages, and the threshold that proves the division best."""

from dataclasses import dataclass

from crawlsched.columns.array_types import FloatArray

__all__ = ["Allocation", "SignalAllocation"]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A division of the bandwidth among pages."""

    rates: FloatArray
    threshold: float


@dataclass(frozen=True, kw_only=True)
class SignalAllocation(Allocation):
    """A division of the bandwidth among pages whose changes are announced."""

    effective_elapsed: FloatArray
    least_freshness: FloatArray
