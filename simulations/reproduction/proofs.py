"""Table of the exact identities that the derivations of a claim decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulations.reproduction.predicates import CheckedTable, Column, Table
from symbolic.core.proof import Proof

if TYPE_CHECKING:
    import pandas as pd


def layout(*, all_sizes: bool = True) -> Table:
    """Return the layout of the table of `decisions`.

    Parameters
    ----------
    all_sizes
        Require identities that are proved for all sizes, with sizes as symbols.
    """
    general = {"identities for all sizes hold": lambda t: t.general_hold}
    return Table(
        index=(),
        columns={
            "identities": Column("exact identities decided"),
            "failed": Column("exact identities that fail"),
            "fewest": Column("identities decided by one derivation, fewest"),
            "general": Column("identities decided for all sizes"),
            "general_hold": Column("holds for all sizes"),
        },
        strict={"every exact identity holds": lambda t: (t.fewest > 0) & (t.failed == 0)}
        | (general if all_sizes else {}),
    )


def decisions(proofs: Sequence[Proof]) -> pd.DataFrame:
    """Return a table of one row: the number of identities, and of those that fail."""
    general = [proof for proof in proofs if proof.all_sizes]
    row = {
        "identities": sum(proof.count for proof in proofs),
        "failed": sum(proof.failed for proof in proofs),
        "fewest": min((proof.count for proof in proofs), default=0),
        "general": sum(proof.count for proof in general),
        "general_hold": bool(general) and all(proof.all_zero for proof in general),
    }
    return layout().frame([row])


def share(table: CheckedTable) -> str:
    """Return the number of identities that hold, such as ``"819 of 819"``."""
    count, failed = table.data[["identities", "failed"]].iloc[0]
    return f"{count - failed} of {count}"
