"""The learning problem of Huang, Wen, Chi, Liang (2024): masked image modelling, one query patch.

Section 2: an image has ``P`` patches. Its cluster k, one of ``K``, splits them into areas; every
patch of area m carries the same vector ``z_m v_{k,m}``. A fraction ``mask_ratio`` of the patches is
masked and reconstructed by one softmax attention layer with positional encodings.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.masked.layout import Areas, Layout

Partition = tuple[tuple[int, ...], ...]
ROLES = ("local", "global")
_MOST_PATCHES = 10**60
_MOST_ORDER_PARAMETERS = 10**4  # the cells of K partitions given by exponents are 3^K


@dataclass(frozen=True)
class MaskedProblem:
    r"""Constants of the data (Definitions 2.1, 2.5) and of the query patch p that is followed.

    The areas are given in one of two ways: by ``partitions``, or by the exponents ``kappa_c`` and
    ``kappa_s`` of Assumption 2.2. Queries do not interact, so each problem follows one of them.

    Parameters
    ----------
    P
        Number of patches.
    partitions
        For each cluster the areas as tuples of patch indices 0..P-1; the first is the global one.
    kappa_c, kappa_s
        The global area has about ``P^kappa_c`` patches, each local area ``round(P^kappa_s)``; the
        number of local areas is rounded so that all patches are used, and the global area takes
        the remainder (:attr:`sizes`).
    K
        Number of clusters, equally likely. With exponents and ``K > 1`` the partitions are
        independent of each other: areas meet in as many patches as they do on average.
    mask_ratio
        Fraction of masked patches; ``masked = round(mask_ratio P)`` of them are masked.
    z_low, z_high
        The scale of each area is uniform on ``[z_low, z_high]``, independent of the others; it is
        fixed where the two agree (``z_high = None``).
    query
        The patch: an index with ``partitions``; with exponents ``"local"`` or ``"global"``, the
        kind of area that p is in, or a tuple with one kind per cluster.

    Raises
    ------
    ParameterError
        One sentence naming the parameter, its value and what is allowed.
    """

    P: int
    mask_ratio: float = 0.5
    kappa_c: float | None = None
    kappa_s: float | None = None
    K: int = 1
    partitions: tuple[Partition, ...] | None = None
    z_low: float = 1.0
    z_high: float | None = None
    query: int | str | tuple[str, ...] = "local"

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("P", "K"):
            put(self, name, integer(name, getattr(self, name)))
        require(2 <= self.P <= _MOST_PATCHES, "P", self.P, "at least 2 and at most 10^60")
        require(1 <= self.K <= 16, "K", self.K, "at least 1 and at most 16")
        put(self, "mask_ratio", finite("mask_ratio", self.mask_ratio))
        require(0.0 < self.mask_ratio < 1.0, "mask_ratio", self.mask_ratio, "in (0, 1)")
        some = f"such that at least one and not all of the P = {self.P} patches are masked"
        require(1 <= self.masked < self.P, "mask_ratio", self.mask_ratio, some)
        put(self, "z_low", finite("z_low", self.z_low))
        require(1e-15 <= self.z_low <= 1e15, "z_low", self.z_low, "between 1e-15 and 1e15")
        if self.z_high is not None:
            put(self, "z_high", finite("z_high", self.z_high))
            allowed = f"at least {self.z_low} and at most 1e15"
            require(self.z_low <= self.z_high <= 1e15, "z_high", self.z_high, allowed)
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
            object.__setattr__(self, name, finite(name, value))
            require(0.0 < getattr(self, name) < 1.0, name, value, "in (0, 1)")
        require(self.sizes[0] >= 1 and self.sizes[2] >= 1, "kappa_c", self.kappa_c,
                "such that a global area and at least one local area find room")  # fmt: skip
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
                f"'global', or a tuple of {self.K} of them, one per cluster"
            )
        groups = [2 if role == "global" or self.sizes[2] == 1 else 3 for role in self.roles]
        numbers = sum(groups) + math.prod(groups) + 1  # Phi, cells, p itself
        require(numbers <= _MOST_ORDER_PARAMETERS, "K", self.K,
                f"so small that there are at most {_MOST_ORDER_PARAMETERS} order parameters (here "
                f"{numbers}: one for each way in which areas of all clusters meet)")  # fmt: skip

    def _check_partitions(self) -> None:
        for name in ("kappa_c", "kappa_s"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{name} = {getattr(self, name)} is not allowed: partitions give the areas"
                )
        require(self.P <= 10**4, "P", self.P, "at most 10^4 with explicit partitions")
        object.__setattr__(self, "partitions", _partitions(self.P, self.partitions))
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
        """Index of the query patch where partitions are explicit."""
        assert isinstance(self.query, int)
        return self.query

    @property
    def roles(self) -> tuple[str, ...]:
        """For each cluster, whether p is in the ``"global"`` area or in a ``"local"`` one."""
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
        """Largest scale; equal to ``z_low`` where the scale is fixed."""
        return self.z_low if self.z_high is None else self.z_high

    @property
    def z_is_fixed(self) -> bool:
        """Whether the scale is a constant."""
        return self.z_top == self.z_low

    @property
    def mean_square_z(self) -> float:
        """E[z^2]."""
        low, high = self.z_low, self.z_top
        return (low * low + low * high + high * high) / 3.0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """With exponents: patches of the global area, of a local area, number of local areas."""
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
        r"""Part of the patch loss that no attention removes: all patches of p's area are masked.

        :math:`\frac{E[z^2]}{2K}\sum_k\binom{P-C_k}{M-C_k}\big/\binom PM`, M masked patches and
        :math:`C_k` patches in p's area of cluster k (Appendix A, unavoidable errors).
        """
        chances = (_all_masked(self.P, self.masked, self.own_size(k)) for k in range(self.K))
        return 0.5 * self.mean_square_z * math.fsum(chances) / self.K

    @cached_property
    def layout(self) -> Layout:
        """Areas, cells of their common refinement and the order parameters (computed once)."""
        return layout_of(self)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Names of the entries of a state."""
        return self.layout.names

    @property
    def initial_state(self) -> np.ndarray:
        """Q(0) = 0: all correlations vanish."""
        return np.zeros(len(self.order_parameters))

    @property
    def multiplicity(self) -> np.ndarray:
        """How many entries of the row ``e_p^T Q`` each order parameter stands for."""
        return self.layout.copies

    def replace(self, **changes: Any) -> MaskedProblem:
        """Return a copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def two_phases(cls, P: int = 10**6, **overrides: Any) -> MaskedProblem:
        """Return a local query with information gap 0.6: the global correlation falls first."""
        return cls(P=P, **({"kappa_c": 0.95, "kappa_s": 0.3} | overrides))

    @classmethod
    def one_phase(cls, P: int = 10**6, **overrides: Any) -> MaskedProblem:
        """Return a local query with information gap -0.2: its own correlation grows at once."""
        return cls(P=P, **({"kappa_c": 0.6, "kappa_s": 0.4} | overrides))

    @classmethod
    def global_area(cls, P: int = 10**6, **overrides: Any) -> MaskedProblem:
        """Return a query in the global area, information gap 0.6."""
        return cls.two_phases(P, **({"query": "global"} | overrides))

    @classmethod
    def from_sizes(
        cls, *sizes: Sequence[int], query: int = 0, seed: int | None = None, **overrides: Any
    ) -> MaskedProblem:
        """Return areas of the given sizes, one sequence per cluster, the global area first.

        Contiguous in the first cluster; in the others shuffled by ``seed`` (``None``: contiguous).
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
        """Return a square grid whose areas are its rows in one cluster, its columns in another."""
        side = integer("side", side)
        require(2 <= side <= 100, "side", side, "at least 2 and at most 100")
        rows = tuple(tuple(range(i * side, (i + 1) * side)) for i in range(side))
        columns = tuple(tuple(range(i, side * side, side)) for i in range(side))
        return cls(P=side * side, partitions=(rows, columns), **({"query": 0} | overrides))


def _partitions(P: int, partitions: Any) -> tuple[Partition, ...]:
    """Return clusters of areas of patch indices as tuples or raise one clear sentence."""
    if not isinstance(partitions, Iterable) or not partitions:
        raise ParameterError("partitions is not allowed: it must hold at least one cluster")
    clusters = []
    for k, areas in enumerate(partitions, 1):
        try:
            found = tuple(tuple(integer("patch", patch) for patch in area) for area in areas)
        except TypeError:
            raise ParameterError(
                f"partitions: cluster {k} is not allowed: it must be a sequence of areas"
            ) from None
        members = sorted(patch for area in found for patch in area)
        if members != list(range(P)) or not all(found):
            raise ParameterError(
                f"partitions: cluster {k} is not allowed: its areas must be nonempty and hold each "
                f"patch 0..{P - 1} once"
            )
        clusters.append(found)
    require(len(clusters) <= 16, "K", len(clusters), "at most 16")
    return tuple(clusters)


def _all_masked(P: int, masked: int, size: int) -> float:
    """Return the probability C(P - size, masked - size) / C(P, masked) that an area is masked."""
    if size > masked or size * math.log(masked / P) < -745.0:
        return 0.0  # below the smallest double: the product has factors of at most masked / P
    index = np.arange(size, dtype=float)
    return math.exp(float(np.sum(np.log((masked - index) / (P - index)))))


def layout_of(problem: MaskedProblem) -> Layout:
    """Return the layout of a problem, areas of equal role grouped where exponents give them."""
    return _from_exponents(problem) if problem.partitions is None else _from_partitions(problem)


def _from_partitions(problem: MaskedProblem) -> Layout:
    """Every area has its own slot, every cell too."""
    assert problem.partitions is not None
    P, K = problem.P, problem.K
    member = np.empty((K, P), int)
    for k, areas in enumerate(problem.partitions):
        for m, patches in enumerate(areas):
            member[k, list(patches)] = m
    names: list[str] = []
    clusters = []
    for k, areas in enumerate(problem.partitions):
        slots = np.arange(len(names), len(names) + len(areas))
        label = "" if K == 1 else f"{k + 1}_"
        names += [f"Phi_{label}{m + 1}" for m in range(len(areas))]
        clusters.append(Areas(slots, np.ones(len(areas)), int(member[k, problem.patch]), 0))
    others = np.delete(member, problem.patch, axis=1)
    cells, size = np.unique(others, axis=1, return_counts=True)
    area = np.concatenate([cells, member[:, [problem.patch]]], axis=1)
    labels = ["_".join(str(m + 1) for m in column) for column in cells.T]
    slots = len(names) + np.arange(size.size + 1)
    copies = np.concatenate([np.ones(len(names)), size, [1.0]])
    names += [f"Upsilon_{label}" for label in labels] + ["Upsilon_self"]
    return Layout(tuple(names), copies, tuple(clusters), np.append(size, 1.0), slots, area)


def _from_exponents(problem: MaskedProblem) -> Layout:
    """Areas by role: global, p's own, the others; cells by the roles in all clusters."""
    K = problem.K
    roles = [_roles(problem, role) for role in problem.roles]  # (name, areas, patches without p)
    names: list[str] = []
    copies: list[float] = []
    clusters = []
    for k, groups in enumerate(roles):
        slots = np.arange(len(names), len(names) + len(groups))
        label = "" if K == 1 else f"_{k + 1}"
        names += [f"Phi_{name}{label}" for name, _, _ in groups]
        counts = np.array([count for _, count, _ in groups], float)
        copies += counts.tolist()
        own = next(i for i, (name, _, _) in enumerate(groups) if name == "own")
        clusters.append(Areas(slots, counts, own, 0))
    others = problem.P - 1.0
    size: list[float] = []
    area: list[tuple[int, ...]] = []
    for index in product(*(range(len(groups)) for groups in roles)):
        shares = [roles[k][m][2] / others for k, m in enumerate(index)]
        if (patches := others * math.prod(shares)) > 0.0:
            size.append(patches if K > 1 else roles[0][index[0]][2])
            area.append(index)
    phi = len(names)
    for index in area:
        names.append("Upsilon_" + "_".join(roles[k][m][0] for k, m in enumerate(index)))
    area.append(tuple(areas.own for areas in clusters))
    names.append("Upsilon_self")
    size.append(1.0)
    return Layout(
        tuple(names),
        np.array([*copies, *size]),
        tuple(clusters),
        np.array(size, float),
        phi + np.arange(len(size)),
        np.array(area).T,
    )


def _roles(problem: MaskedProblem, role: str) -> list[tuple[str, int, float]]:
    """Return (name, number of areas, patches other than p) of each group, the global area first."""
    large, small, count = problem.sizes
    if role == "global":
        return [("own", 1, large - 1.0), ("other", count, float(count * small))]
    groups = [("global", 1, float(large)), ("own", 1, small - 1.0)]
    return groups + ([("other", count - 1, float((count - 1) * small))] if count > 1 else [])
