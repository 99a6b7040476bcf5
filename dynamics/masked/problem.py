"""Masked image modelling of one query patch: the problem of Huang, Wen, Chi, Liang (2024).

An image has ``P`` patches (Section 2). Its cluster k, one of ``K``, partitions them into areas, and
all patches of area m have the same vector ``z_m v_{k,m}``. A fraction ``mask_ratio`` of the patches
is masked. One softmax attention layer with positional encodings reconstructs them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dynamics.core.annotations import (
    Alias,
    Doc,
    Draw,
    Text,
    Ticks,
    Unreported,
    above,
    at_least,
    at_most,
    below,
    decades,
    evenly,
)
from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.parameters import Parameters
from dynamics.masked.layout import Layout, layout_of
from dynamics.masked.partitions import (
    MOST_PATCHES,
    Partition,
    checked_partitions,
    partitions_as_text,
    partitions_from,
)

SHARES = Ticks(*evenly(0.05, 0.95, 0.05))
ROLES = ("local", "global")
_MOST_ORDER_PARAMETERS = 10**4  # K partitions determined by exponents have 3^K cells


def _query_from(text: str) -> int | str | tuple[str, ...]:
    """Parse the index of a patch, a role, or a role for each cluster."""
    if text.isdecimal():
        return int(text)
    roles = tuple(role.strip() for role in text.split(","))
    return roles[0] if len(roles) == 1 else roles


def _query_as_text(query: int | str | tuple[str, ...]) -> str:
    return ",".join(query) if isinstance(query, tuple) else str(query)


@dataclass(frozen=True)
class MaskedProblem(Parameters):
    r"""Constants of the data (Definitions 2.1 and 2.5) and of a query patch p.

    The areas are determined either by ``partitions`` or by the exponents ``kappa_c`` and
    ``kappa_s`` of Assumption 2.2. Queries do not interact, so a problem has a single one.

    Parameters
    ----------
    P
        Number of patches.
    partitions
        Areas of each cluster, as tuples of patch indices 0..P-1; the first area is the global one.
    kappa_c, kappa_s
        The global area has about ``P^kappa_c`` patches, each local area ``round(P^kappa_s)``. The
        number of local areas is rounded, and the global area receives the remaining patches
        (:attr:`sizes`).
    K
        Number of clusters, which are equally likely. With exponents and ``K > 1`` the partitions
        are independent: two areas have as many patches in common as they have on average.
    mask_ratio
        Fraction of masked patches; ``round(mask_ratio P)`` patches are masked.
    z_low, z_high
        The scale of each area is uniform on ``[z_low, z_high]``, independent of the others. It is
        fixed if the two are equal (``z_high = None``).
    query
        With ``partitions`` the index of p. With exponents the role of the area of p, ``"local"`` or
        ``"global"``, or a tuple with a role for each cluster.

    Raises
    ------
    ParameterError
        If a constant is not allowed. The message states its name, its value and what is allowed.
    """

    P: Annotated[
        int,
        at_least(2),
        at_most(10**60),
        Doc("number of patches", allowed="an integer, at least 2"),
        Ticks(*(10**k for k in range(2, 19))),
        Draw(among=tuple(2**k for k in range(4, 21))),
    ]
    mask_ratio: Annotated[
        float,
        above(0),
        below(1),
        Doc("fraction of masked patches"),
        SHARES,
        Draw(0.1, 0.9, default=True),
    ] = 0.5
    kappa_c: Annotated[
        float | None,
        above(0),
        below(1),
        Doc("exponent of the size of the global area"),
        SHARES,
        Draw(0.5, 0.97),
    ] = None
    kappa_s: Annotated[
        float | None, above(0), below(1), Doc("exponent of a local area"), SHARES, Draw(0.1, 0.7)
    ] = None
    K: Annotated[
        int,
        at_least(1),
        at_most(16),
        Ticks(1, 2, 3),
        Doc("number of clusters, their partitions independent", allowed="an integer, at least 1"),
    ] = 1
    partitions: Annotated[
        tuple[Partition, ...] | None,
        Text(partitions_from, partitions_as_text),
        Doc(
            "areas instead of P, kappa_c, kappa_s and K: patches such as 0-3/4,5/6-7, the global "
            "area first, clusters separated by a colon",
            allowed="every patch once in each cluster",
        ),
    ] = None
    z_low: Annotated[
        float,
        at_least(1e-15),
        at_most(1e15),
        Doc("least scale of an area; scales are independent", allowed="greater than 0"),
        Alias(
            "z",
            Doc("scale of the features, the same in all areas"),
            ticks=Ticks(*decades(-0.5, 0.5, each=20)),
            draw=Draw(0.5, 2, default=True),
        ),
    ] = 1.0
    z_high: Annotated[
        float | None,
        at_most(1e15),
        Unreported(),
        Doc("greatest scale", default="z_low", allowed="at least z_low"),
    ] = None
    query: Annotated[
        int | str | tuple[str, ...],
        Text(_query_from, _query_as_text),
        Draw(among=("local", "global")),
        Doc(
            "role of p's area; with K > 1 possibly a role for each cluster, such as local,global; "
            "with partitions the index of p",
            "local, or patch 0",
            allowed="local or global, or an index",
        ),
    ] = "local"

    def check(self) -> None:
        """Check that some patches are masked but not all, and that the areas fit."""
        some = f"such that at least one and not all of the P = {self.P} patches are masked"
        require(1 <= self.masked < self.P, "mask_ratio", self.mask_ratio, some)
        if self.z_high is not None:
            allowed = f"at least {self.z_low} and at most 1e15"
            require(self.z_low <= self.z_high, "z_high", self.z_high, allowed)
        if self.partitions is None:
            self._check_exponents()
        else:
            self._check_partitions()

    def _check_exponents(self) -> None:
        for name in ("kappa_c", "kappa_s"):
            value = getattr(self, name)
            if value is None:
                raise ParameterError(
                    f"{name} = None is not allowed: give kappa_c and kappa_s, or partitions"
                )
        require(
            self.sizes[0] >= 1 and self.sizes[2] >= 1,
            "kappa_c",
            self.kappa_c,
            "such that there are patches for a global and for at least one local area",
        )
        if isinstance(self.query, list):
            object.__setattr__(self, "query", tuple(self.query))
        roles = (self.query,) * self.K if isinstance(self.query, str) else self.query
        if not (
            isinstance(roles, tuple)
            and len(roles) == self.K
            and all(role in ROLES for role in roles)
        ):
            raise ParameterError(
                f"query = {self.query!r} is not allowed: with exponents it must be 'local', "
                f"'global', or a tuple of {self.K} of them, one for each cluster"
            )
        groups = [2 if role == "global" or self.sizes[2] == 1 else 3 for role in self.roles]
        numbers = sum(groups) + math.prod(groups) + 1  # Phi, cells, p itself
        require(
            numbers <= _MOST_ORDER_PARAMETERS,
            "K",
            self.K,
            f"so small that there are at most {_MOST_ORDER_PARAMETERS} order parameters (here "
            f"{numbers}: one for each intersection of areas of all clusters)",
        )

    def _check_partitions(self) -> None:
        for name in ("kappa_c", "kappa_s"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{name} = {getattr(self, name)} is not allowed with partitions: omit it"
                )
        require(self.P <= MOST_PATCHES, "P", self.P, "at most 10^4 with explicit partitions")
        object.__setattr__(self, "partitions", checked_partitions(self.P, self.partitions))
        assert self.partitions is not None
        object.__setattr__(self, "K", len(self.partitions))
        if isinstance(self.query, (str, tuple, list)):
            raise ParameterError(
                f"query = {self.query!r} is not allowed: with partitions it must be a patch index"
            )
        object.__setattr__(self, "query", integer("query", self.query))
        require(0 <= self.patch < self.P, "query", self.query, f"in 0..{self.P - 1}")

    @property
    def patch(self) -> int:
        """Index of the query patch; only with explicit partitions."""
        assert isinstance(self.query, int)
        return self.query

    @property
    def roles(self) -> tuple[str, ...]:
        """Role of p's area in each cluster, ``"global"`` or ``"local"``."""
        if self.partitions is not None:
            first = (self.patch in areas[0] for areas in self.partitions)
            return tuple("global" if inside else "local" for inside in first)
        if isinstance(self.query, str):
            return (self.query,) * self.K
        assert isinstance(self.query, tuple)
        return self.query

    @property
    def masked(self) -> int:
        """Number of masked patches."""
        return round(self.mask_ratio * self.P)

    @property
    def z_top(self) -> float:
        """Largest scale; equal to ``z_low`` if the scale is fixed."""
        return self.z_low if self.z_high is None else self.z_high

    @property
    def z_is_fixed(self) -> bool:
        """Whether the scale is fixed."""
        return self.z_top == self.z_low

    @property
    def mean_square_z(self) -> float:
        """E[z^2]."""
        low, high = self.z_low, self.z_top
        return (low * low + low * high + high * high) / 3.0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Patches of the global area, patches of a local area, and number of local areas.

        Only with exponents.
        """
        assert self.kappa_c is not None
        assert self.kappa_s is not None
        local = max(1, round(self.P**self.kappa_s))
        count = (2 * (self.P - round(self.P**self.kappa_c)) + local) // (2 * local)  # rounded
        return self.P - count * local, local, count

    @property
    def information_gap(self) -> float:
        """``Delta = (1 - kappa_s) - 2 (1 - kappa_c)``, equation (4.1); nan without exponents."""
        if self.kappa_c is None or self.kappa_s is None:
            return math.nan
        return (1.0 - self.kappa_s) - 2.0 * (1.0 - self.kappa_c)

    def own_size(self, cluster: int = 0) -> int:
        """Return the number of patches in p's area of a cluster, p included."""
        if self.partitions is None:
            return self.sizes[0 if self.roles[cluster] == "global" else 1]
        return next(len(area) for area in self.partitions[cluster] if self.patch in area)

    @property
    def floor(self) -> float:
        r"""Loss that no attention removes, of masks that hide all patches of p's area.

        :math:`\frac{E[z^2]}{2K}\sum_k\binom{P-C_k}{M-C_k}\big/\binom PM`, M masked patches and
        :math:`C_k` patches in p's area of cluster k (Appendix A, unavoidable errors).
        """
        probabilities = (_all_masked(self.P, self.masked, self.own_size(k)) for k in range(self.K))
        return 0.5 * self.mean_square_z * math.fsum(probabilities) / self.K

    @cached_property
    def layout(self) -> Layout:
        """Areas, cells of their common refinement, and order parameters."""
        return layout_of(self)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Names of the entries of a state."""
        return self.layout.names

    @property
    def initial_state(self) -> np.ndarray:
        """The state of Q(0) = 0, (slots,)."""
        return np.zeros(len(self.order_parameters))

    @property
    def multiplicity(self) -> np.ndarray:
        """Number of entries of ``e_p^T Q`` that each order parameter represents, (slots,)."""
        return self.layout.copies

    def replace(self, **changes: Any) -> MaskedProblem:
        """Return a validated copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def two_phases(cls, P: int = 10**6, **overrides: Any) -> MaskedProblem:
        """Return a local query with information gap 0.6: the global correlation falls first."""
        return cls(P=P, **({"kappa_c": 0.95, "kappa_s": 0.3} | overrides))

    @classmethod
    def one_phase(cls, P: int = 10**6, **overrides: Any) -> MaskedProblem:
        """Return a local query with information gap -0.2: its own correlation leads at once."""
        return cls(P=P, **({"kappa_c": 0.6, "kappa_s": 0.4} | overrides))

    @classmethod
    def global_area(cls, P: int = 10**6, **overrides: Any) -> MaskedProblem:
        """Return a query in the global area, information gap 0.6."""
        return cls.two_phases(P, **({"query": "global"} | overrides))

    @classmethod
    def from_sizes(
        cls, *sizes: Sequence[int], query: int = 0, seed: int | None = None, **overrides: Any
    ) -> MaskedProblem:
        """Return a problem with areas of given sizes.

        Parameters
        ----------
        *sizes
            Sizes of the areas of each cluster, the global area first. Areas of the first cluster
            are contiguous.
        query
            Index of p.
        seed
            Seed of the random patches of the areas of all other clusters; ``None``: contiguous.
        **overrides
            Other fields of the problem.

        Raises
        ------
        ParameterError
            If the sizes of two clusters have different sums, or a field is not allowed.
        """
        P = sum(sizes[0]) if sizes else 0
        rng = np.random.default_rng(seed)
        partitions = []
        for k, areas in enumerate(sizes):
            order = np.arange(P) if k == 0 or seed is None else rng.permutation(P)
            ends = np.cumsum(areas)
            require(int(ends[-1]) == P, "sizes", tuple(areas), f"a partition of P = {P} patches")
            pieces = np.split(order, ends[:-1])
            partitions.append(tuple(tuple(sorted(piece.tolist())) for piece in pieces))
        return cls(P=P, partitions=tuple(partitions), query=query, **overrides)

    @classmethod
    def rows_and_columns(cls, side: int, **overrides: Any) -> MaskedProblem:
        """Return a problem on a square grid with two clusters, whose areas are rows and columns."""
        side = integer("side", side)
        require(2 <= side <= 100, "side", side, "at least 2 and at most 100")
        rows = tuple(tuple(range(i * side, (i + 1) * side)) for i in range(side))
        columns = tuple(tuple(range(i, side * side, side)) for i in range(side))
        return cls(P=side * side, partitions=(rows, columns), **({"query": 0} | overrides))


def _all_masked(P: int, masked: int, size: int) -> float:
    """Return C(P - size, masked - size) / C(P, masked), the probability to mask a whole area."""
    if size > masked or size * math.log(masked / P) < -745.0:
        return 0.0  # below the smallest double: the product has factors of at most masked / P
    index = np.arange(size, dtype=float)
    return math.exp(float(np.sum(np.log((masked - index) / (P - index)))))
