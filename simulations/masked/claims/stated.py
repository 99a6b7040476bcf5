"""The reduction with one partition, from one file: derived for all areas and masks."""

from pathlib import Path
from typing import Any

from simulations.figures import report_figure
from simulations.figures.shared import draw_slopes
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.seeds import rng_at
from simulations.stated import evidence
from simulations.stated.check import AGREES
from symbolic import masked
from symbolic.theory import load_theory

#: G, C, N and M of the problems with all entries and masks. For G = C the global area is equivalent
#: to the local ones, a control with fewer values.
SIZES = ((3, 2, 2, 3), (2, 2, 3, 4), (4, 2, 2, 5), (2, 3, 2, 4), (3, 2, 3, 6))


def measure(context: Context) -> Measurement:
    """Derive the theory, and compare it with the full model at random sizes."""
    theory = load_theory(Path(masked.__file__).parent / "stated.py")
    rng = rng_at(context.seed, 16)
    sizes = SIZES[:2] if context.quick else SIZES
    problems = [dict(zip("GCNM", row)) | {"z": float(rng.uniform(0.5, 2.0))} for row in sizes]
    result = evidence.collect(theory, problems, orders, conserved, values)
    figure = report_figure(
        "stated-masked",
        "Every entry has one of twelve slopes",
        "Slope of the reconstruction loss in every entry of the rows of positions (dots) at a "
        "random state of the manifold, one panel per problem, and the slopes that are derived from "
        "the theory file for all sizes (bars).",
        draw_slopes,
        evidence.slopes(result),
        (7.4, 4.4),
    )
    return Measurement(result.tables(), {"problems": problems}, (figure,))


def orders(G: Any, C: Any, N: Any, M: Any) -> dict[str, Any]:
    """Return the number of entries of each order parameter: rows times patches or areas."""
    near, far = "own local area", "other local area"
    return {
        "Phi[global to global area]": G,
        "Phi[global to local area]": G * N,
        "Phi[local to global area]": C * N,
        f"Phi[local to local area, {near}]": C * N,
        f"Phi[local to local area, {far}]": C * N * (N - 1),
        "Upsilon[global to global, diagonal]": G,
        "Upsilon[global to global]": G * (G - 1),
        "Upsilon[global to local]": G * C * N,
        "Upsilon[local to global]": C * N * G,
        "Upsilon[local to local, diagonal]": C * N,
        "Upsilon[local to local, same local area]": C * N * (C - 1),
        f"Upsilon[local to local, {far}]": C * N * C * (N - 1),
    }


def conserved(G: Any, C: Any, N: Any, M: Any) -> list[dict[str, Any]]:
    """Return the sum rule of Lemma 5.2: the sum of the position correlations of a row is fixed."""
    return [
        {
            "Upsilon[global to global, diagonal]": 1,
            "Upsilon[global to global]": G - 1,
            "Upsilon[global to local]": C * N,
        },
        {
            "Upsilon[local to global]": G,
            "Upsilon[local to local, diagonal]": 1,
            "Upsilon[local to local, same local area]": C - 1,
            "Upsilon[local to local, other local area]": C * (N - 1),
        },
    ]


def values(G: float, C: float, N: float, M: float) -> int:
    """Return the number of distinct slopes.

    For G = C there are five: two areas for features; p itself and two areas for positions.
    """
    return 5 if G == C else 12


CLAIM = Claim(
    id="huang-stated",
    place="Section 5, Appendix A.1.1 (one partition)",
    statement=(
        "With one partition the correlations of a patch depend only on its own area and on the "
        "area of the key, and the sum of the position correlations of a row is conserved."
    ),
    method=(
        "Order parameters and numbers of entries are derived for all sizes from the theory file "
        "alone. At sampled problems the derived gradient is compared with every entry of the full "
        "model. The distinct slopes, the conserved linear quantities and the rate at which the "
        "manifold repels are computed from the gradient of this model."
    ),
    criterion=(
        "The numbers of entries must be those of pairs of patches and areas as polynomials in the "
        "sizes. Loss and gradient must be equal to the full model up to rounding (1e-11 of the "
        "largest entry). Colour refinement of the full gradient must result in as many values as "
        "there are orbits, each orbit within one (for G = C, where all areas are equivalent, the "
        "five of a single type of area). The conserved linear forms must be the two sums over a "
        "row. Any violation fails. Whether the manifold repels does not decide, as the paper makes "
        "no statement about it."
    ),
    tables=evidence.layouts(("G", "C", "N", "M")),
    measure=measure,
    headline=evidence.headline,
    finding=(
        "{most} values in the full gradient ({least} for equal areas), {conserved} conserved sums; "
        "agreement {difference:.0e}."
    ),
    tolerance=AGREES,
    quick_note="two problems instead of five",
    assumptions="the dense reading, which shares no code with the derivation",
)
