"""Limits: least and greatest rates of pages, and caps of hosts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.arguments import not_negative
from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What the rates have to keep to: one entry per page, and one cap per host."""

    minimum_rate: FloatArray
    maximum_rate: FloatArray
    hosts: IndexArray | None = None
    host_caps: FloatArray | None = None

    @classmethod
    def checked(
        cls,
        n_pages: int,
        minimum_rate: ArrayLike = 0.0,
        maximum_rate: ArrayLike = np.inf,
        hosts: ArrayLike | None = None,
        host_caps: ArrayLike | None = None,
    ) -> "Limits":
        """Make limits from a caller's arguments, or say which of them is wrong."""
        minimum = not_negative("minimum_rate", _per_page("minimum_rate", minimum_rate, n_pages))
        maximum = not_negative("maximum_rate", _per_page("maximum_rate", maximum_rate, n_pages), infinite=True)
        if (minimum > maximum).any():
            page = int(np.argmax(minimum > maximum))
            raise ValueError(
                f"minimum_rate[{page}] is {float(minimum[page])!r}, above maximum_rate[{page}], which is "
                f"{float(maximum[page])!r}; lower the one or raise the other."
            )
        if (hosts is None) != (host_caps is None):
            given, missing = ("host_caps", "hosts") if hosts is None else ("hosts", "host_caps")
            raise ValueError(f"{given} was given without {missing}; pass both: a host per page, a cap per host.")
        if hosts is None or host_caps is None:
            return cls(minimum, maximum)
        limits = cls(minimum, maximum, *_checked_hosts(hosts, host_caps, n_pages))
        limits._check_host_minima()
        return limits

    def check_bandwidth(self, bandwidth: float) -> None:
        """Raise ValueError if the least rates alone need more than the bandwidth."""
        needed = float(np.sum(self.minimum_rate))
        if needed > bandwidth * (1.0 + 1e-12):
            raise ValueError(
                f"minimum_rate adds up to {needed!r} crawls per second, more than the bandwidth of {bandwidth!r}; "
                "lower minimum_rate or raise bandwidth."
            )

    def _check_host_minima(self) -> None:
        assert self.hosts is not None
        assert self.host_caps is not None
        needed = np.bincount(self.hosts, weights=self.minimum_rate, minlength=self.host_caps.size)
        if (needed > self.host_caps * (1.0 + 1e-12)).any():
            host = int(np.argmax(needed > self.host_caps * (1.0 + 1e-12)))
            raise ValueError(
                f"minimum_rate of the pages of host {host} adds up to {float(needed[host])!r} crawls per second, more "
                f"than host_caps[{host}], which is {float(self.host_caps[host])!r}; lower the one or raise the other."
            )


def _per_page(name: str, value: ArrayLike, n_pages: int) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (n_pages,)):
        raise ValueError(
            f"{name} has the shape {array.shape} but there are {n_pages} pages; "
            "pass one entry per page, or one number for all."
        )
    return np.broadcast_to(array, (n_pages,))


def _checked_hosts(hosts: ArrayLike, host_caps: ArrayLike, n_pages: int) -> tuple[IndexArray, FloatArray]:
    caps = np.asarray(host_caps, dtype=np.float64)
    numbers = np.asarray(hosts)
    if caps.ndim != 1:
        raise ValueError(f"host_caps has {caps.ndim} dimensions; pass one cap per host, in crawls per second.")
    not_negative("host_caps", caps, infinite=True)
    if numbers.shape != (n_pages,) or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise ValueError(
            f"hosts has the shape {numbers.shape} and the type {numbers.dtype}; "
            f"pass one whole number per page ({n_pages} pages), an index into host_caps."
        )
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < caps.size):
        page = int(np.argmax((numbers < 0) | (numbers >= caps.size)))
        raise ValueError(
            f"hosts[{page}] is {int(numbers[page])}; every host must be an index into host_caps, 0 to {caps.size - 1}."
        )
    return numbers.astype(np.intp, copy=False), caps
