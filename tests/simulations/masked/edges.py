"""Values on both sides of each threshold of the claims of masked image modelling."""

from typing import Any

from tests.simulations.positional.edges_section_4 import GENERAL
from tests.simulations.stated.edges import REDUCTION

Edges = list[tuple[str, str, dict[str, Any], dict[str, Any]]]


def interval(table: str, inside: str, resolved: str) -> Edges:
    """Return the edges of an exponent that is predicted as 0.5, and measured to a tenth of it."""
    good = {"predicted": 0.5, "exponent_low": 0.49, "exponent_high": 0.51}
    return [
        (table, inside, good | {"exponent_low": 0.499}, good | {"exponent_low": 0.501}),
        (table, inside, good | {"exponent_high": 0.501}, good | {"exponent_high": 0.499}),
        (table, resolved, good | {"exponent_high": 0.589}, good | {"exponent_high": 0.591}),
        (table, resolved, good | {"predicted": -0.101}, good | {"predicted": -0.099}),
    ]


IDENTITIES: Edges = [
    *GENERAL,
    ("oracle", "reduced and d x d gradients agree",
     {"difference": 0.99e-13}, {"difference": 1.01e-13}),
]  # fmt: skip
#: A run with two phases; a positional optimum with one and with two partitions; trained maps.
PHASES = {"phases": 2, "rival_at_switch": -3.01, "others_at_switch": 1.0}
LOSSES = {"partitions": 2, "single": 0.06, "lower": 0.1, "floor": 0.02, "features": 0.0599}
LOCAL = {"share_trained": 0.5, "share_positional": 0.49, "share_untrained": 0.49}

#: Mapping from claim to (table, predicate, values that pass, values that fail).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "huang-stated": REDUCTION,
    "huang-growth-stages": [
        ("stages", "rapid growth: the speed of Phi_n rises to a peak",
         {"fall_before": 0.9e-6, "boost": 3.01}, {"fall_before": 1.1e-6, "boost": 3.01}),
        ("stages", "rapid growth: the speed of Phi_n rises to a peak",
         {"fall_before": 0.9e-6, "boost": 3.01}, {"fall_before": 0.9e-6, "boost": 2.99}),
        ("stages", "attention is of constant order at the peak",
         {"attention_peak": 0.101}, {"attention_peak": 0.099}),
        ("stages", "convergence: the speed falls after the peak",
         {"rise_after": 0.9e-6, "slowdown": 3.01}, {"rise_after": 1.1e-6, "slowdown": 3.01}),
        ("stages", "convergence: the speed falls after the peak",
         {"rise_after": 0.9e-6, "slowdown": 3.01}, {"rise_after": 0.9e-6, "slowdown": 2.99}),
        ("stages", "all other speeds are small from the peak on",
         {"lead_after": 3.01}, {"lead_after": 2.99}),
    ],
    "huang-loss-lemma": [
        ("losses", "A.8: the raw loss is that of the attention",
         {"raw": 0.1, "loss": 0.1 + 0.9e-12}, {"raw": 0.1, "loss": 0.1 + 1.1e-12}),
        ("losses", "A.9: no loss is below the floor",
         {"raw": 0.1 - 0.9e-12, "floor": 0.1}, {"raw": 0.1 - 1.1e-12, "floor": 0.1}),
        ("losses", "A.9: the floor is approached",
         {"aligned": 0.1 + 0.9e-12, "floor": 0.1}, {"aligned": 0.1 + 1.1e-12, "floor": 0.1}),
        ("losses", "A.10: between the two bounds",
         {"raw": 0.3 - 0.9e-12, "floor": 0.1, "shortfall": 0.4},
         {"raw": 0.3 - 1.1e-12, "floor": 0.1, "shortfall": 0.4}),
        ("losses", "A.10: between the two bounds",
         {"raw": 0.6 + 0.9e-12, "floor": 0.1, "shortfall": 0.4},
         {"raw": 0.6 + 1.1e-12, "floor": 0.1, "shortfall": 0.4}),
    ],
    "huang-lemma-5.1": [
        *IDENTITIES,
        ("flows", "dPhi_n/dt is nowhere negative", {"own_speed": 0.0}, {"own_speed": -1e-300}),
        ("flows", "Phi_1 of a local patch never rises", {"rise": 0.99e-9}, {"rise": 1.01e-9}),
        ("random problems", "dPhi_n/dt is nowhere negative",
         {"own_speed": 0.0}, {"own_speed": -1e-300}),
        ("random problems", "Phi_1 of a local patch never rises",
         {"rise_random": 0.99e-9}, {"rise_random": 1.01e-9}),
    ],
    "huang-lemma-5.2": [
        *IDENTITIES,
        ("flows", "Upsilon sums to 0 over q", {"sums": 0.0}, {"sums": 1e-300}),
        ("flows", "projected on areas Upsilon moves slower than Phi",
         {"share": 0.999}, {"share": 1.0}),
    ],
    "huang-optimizers": [
        ("two phases", "Phi_1 decreases first, then Phi_n takes over",
         PHASES, PHASES | {"phases": 1}),
        ("two phases", "Phi_1 decreases first, then Phi_n takes over",
         PHASES, PHASES | {"rival_at_switch": 0.0}),
        ("two phases", "all others hardly change before the switch",
         PHASES, PHASES | {"rival_at_switch": -2.99}),
        ("two phases", "Phi_1 is nearly unchanged after the switch",
         {"own_gain": 3.01, "rival_loss": 1.0}, {"own_gain": 2.99, "rival_loss": 1.0}),
        ("two phases", "p learns", {"learned": 1e9}, {"learned": float("nan")}),
        ("one phase", "the increase of Phi_n dominates throughout",
         {"overtaken": 0.999}, {"overtaken": 1.0}),
        ("one phase", "all others stay close to 0", {"others": 0.099}, {"others": 0.101}),
        ("one phase", "p learns", {"learned": 1e9}, {"learned": float("nan")}),
    ],
    "huang-two-phases": [
        ("runs", "Phi_1 decreases first, then Phi_n takes over", PHASES, PHASES | {"phases": 1}),
        ("runs", "Phi_1 decreases first, then Phi_n takes over",
         PHASES | {"rival_at_switch": -1e-300}, PHASES | {"rival_at_switch": 0.0}),
        ("runs", "all others hardly change before the switch",
         PHASES, PHASES | {"rival_at_switch": -2.99}),
        ("runs", "all others hardly change before the switch",
         PHASES, PHASES | {"rival_at_switch": 3.01}),
        ("runs", "Phi_1 is nearly unchanged after the switch",
         {"own_gain": 3.01, "rival_loss": 1.0}, {"own_gain": 2.99, "rival_loss": 1.0}),
        ("plane", "the sign of Delta gives the number of phases where |Delta| > 0.1",
         {"cells": 1, "mismatches": 0}, {"cells": 1, "mismatches": 1}),
        ("plane", "the sign of Delta gives the number of phases where |Delta| > 0.1",
         {"cells": 1, "mismatches": 0}, {"cells": 0, "mismatches": 0}),
    ],
    "huang-one-phase": [
        ("runs", "the increase of Phi_n dominates throughout",
         {"overtaken": 0.999}, {"overtaken": 1.0}),
        ("runs", "all others stay close to 0", {"others": 0.099}, {"others": 0.101}),
    ],
    "huang-theorem-4.1": [
        ("runs", "the loss is within eps of its floor in time",
         {"excess": 1.99e-4, "error": 1e-4}, {"excess": 2.01e-4, "error": 1e-4}),
        ("runs", "nearly all attention goes to p's area in every cluster",
         {"shortfall": 0.99e-4}, {"shortfall": 1.01e-4}),
        ("time in P", "the exponent in P is at most that of the theorem, recalled bounds aside",
         {"recalled": False, "time_exponent_low": 0.549, "time_bound": 0.55},
         {"recalled": False, "time_exponent_low": 0.551, "time_bound": 0.55}),
        ("time in P", "the exponent in P is at most that of the theorem, recalled bounds aside",
         {"recalled": True, "time_exponent_low": 0.551, "time_bound": 0.55},
         {"recalled": False, "time_exponent_low": 0.551, "time_bound": 0.55}),
        ("time in P", "the exponent in P is at most that of the theorem",
         {"recalled": True, "time_exponent_low": 0.549, "time_bound": 0.55},
         {"recalled": True, "time_exponent_low": 0.551, "time_bound": 0.55}),
        ("time in P", "the exponent in P is measured",
         {"time_exponent_low": 0.4, "time_exponent_high": 0.509, "time_bound": 0.55},
         {"time_exponent_low": 0.4, "time_exponent_high": 0.511, "time_bound": 0.55}),
        ("last stage", "the exponent in 1/eps is at most 1",
         {"last_exponent_low": 0.999}, {"last_exponent_low": 1.001}),
        ("last stage", "the exponent in 1/eps is measured",
         {"last_exponent_low": 0.9, "last_exponent_high": 1.099},
         {"last_exponent_low": 0.9, "last_exponent_high": 1.101}),
    ],
    "huang-scaling": [
        *interval("exponents", "the predicted exponent is inside the interval",
                  "the exponent is resolved"),
        ("final stage", "the final stage takes its time to leading order",
         {"final_stage": 0.997, "allowed": 4e-3}, {"final_stage": 0.995, "allowed": 4e-3}),
        ("final stage", "the final stage takes its time to leading order",
         {"final_stage": 1.003, "allowed": 4e-3}, {"final_stage": 1.005, "allowed": 4e-3}),
        ("one phase", "a single phase takes the time of Phi_n alone to leading order",
         {"one_phase_time": 0.997, "allowed": 4e-3}, {"one_phase_time": 0.995, "allowed": 4e-3}),
        ("one phase", "a single phase takes the time of Phi_n alone to leading order",
         {"one_phase_time": 1.003, "allowed": 4e-3}, {"one_phase_time": 1.005, "allowed": 4e-3}),
    ],
    "huang-pp-small": interval(
        "exponents", "the exponent can be -kappa_s in the limit", "the exponent is resolved"
    ),
    "huang-positional-is-not-enough": [
        ("losses", "the duality gap is small",
         {"best": 1.0, "lower": 1.0 - 0.99e-6}, {"best": 1.0, "lower": 1.0 - 1.01e-6}),
        ("losses", "the flow of positions stays above the optimum",
         {"positions": 0.1, "lower": 0.1}, {"positions": 0.0999, "lower": 0.1}),
        ("losses", "a second partition adds more than FP attention leaves",
         LOSSES, LOSSES | {"features": 0.0601}),
        ("losses", "a second partition adds more than FP attention leaves",
         LOSSES | {"partitions": 1, "features": 0.1}, LOSSES | {"features": 0.1}),
        ("losses", "a second partition adds more than FP attention leaves",
         LOSSES | {"single": 0.0999, "features": 0.01},
         LOSSES | {"single": 0.1001, "features": 0.01}),
        ("second partition", "a second partition costs, or leaves common patches",
         {"harmless": 2, "harmless_common": 2}, {"harmless": 2, "harmless_common": 1}),
        ("second partition", "every second partition costs", {"harmless": 0}, {"harmless": 1}),
    ],
    "huang-diversity": [
        ("images", "trained maps are more diverse than one shared region",
         {"trained_least": 20.1, "collapsed_greatest": 20.0},
         {"trained_least": 20.0, "collapsed_greatest": 20.0}),
        ("images", "trained queries attend to their own areas more than others do",
         LOCAL, LOCAL | {"share_positional": 0.5}),
        ("images", "trained queries attend to their own areas more than others do",
         LOCAL, LOCAL | {"share_untrained": 0.5}),
    ],
    "huang-reduced-equals-full": [
        ("problems", "reduced and d x d descent agree",
         {"difference": 0.99e-12}, {"difference": 1.01e-12}),
        ("problems", "the rows of features do not move", {"motion": 0.0}, {"motion": 1e-300}),
        ("problems", "Upsilon is the same within each cell",
         {"spread": 0.99e-12}, {"spread": 1.01e-12}),
        ("problems", "the run moves away from Q = 0", {"reached": 0.501}, {"reached": 0.499}),
    ],
}  # fmt: skip
