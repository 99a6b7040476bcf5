"""Values on both sides of each threshold of the claims about theories in overlaps."""

from typing import Any

#: Mapping from claim to rows (table, predicate, values that pass, values that fail).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "saad-solla": [
        ("plateaus", "it is stationary", {"residual": 9e-15}, {"residual": 1.1e-14}),
        *(("plateaus", "its loss is the formula",
           {"loss_off": sign * 9e-13}, {"loss_off": sign * 1.1e-12}) for sign in (1.0, -1.0)),
        *(("plateaus", "its largest growth rate is the formula",
           {"rate_off": sign * 9e-10}, {"rate_off": sign * 1.1e-9}) for sign in (1.0, -1.0)),
        *(("derived", "the derived theory is the paper's",
           {"equivalent": 0.0, "separate": 0.0} | {part: 9e-13},
           {"equivalent": 0.0, "separate": 0.0} | {part: 1.1e-12})
          for part in ("equivalent", "separate")),
        *(("derived", "their flows agree", {"flow": sign * 9e-6}, {"flow": sign * 1.1e-5})
          for sign in (1.0, -1.0)),
        *((table, "the flow rests at the plateau",
           {"rests": sign * (limit - 0.001)}, {"rests": sign * (limit + 0.001)})
          for table, limit in (("flows", 0.01), ("random starts", 0.03)) for sign in (1.0, -1.0)),
        *((table, "the differences grow at the escape rate",
           {"growth": sign * (limit - 0.001)}, {"growth": sign * (limit + 0.001)})
          for table, limit in (("flows", 0.01), ("random starts", 0.03)) for sign in (1.0, -1.0)),
        ("flows", "the units become the teacher's", {"end": 9e-7}, {"end": 1.1e-6}),
        ("random starts", "the units become the teacher's",
         {"end": 9e-7, "teachers": 3}, {"end": 1.1e-6, "teachers": 3}),
        ("random starts", "the units become the teacher's",
         {"end": 9e-7, "teachers": 3}, {"end": 9e-7, "teachers": 2}),
        *(("delays", "a smaller start delays by log / rate",
           {"delay": 1.0 + sign * 0.009}, {"delay": 1.0 + sign * 0.011}) for sign in (1.0, -1.0)),
    ],
    "single-location": [
        ("derived", "the derived risk is the formula", {"loss": 9e-12}, {"loss": 1.1e-11}),
        ("derived", "velocity and exact step are those of the formula",
         {"step": 9e-12}, {"step": 1.1e-11}),
        ("derived", "theta, eta and rho do not move on the manifold",
         {"still": 9e-13}, {"still": 1.1e-12}),
        ("manifold", "all runs stay on the manifold", {"drift": 9e-13}, {"drift": 1.1e-12}),
        ("manifold", "all runs end at the solution",
         {"starts": 5, "solved": 5}, {"starts": 5, "solved": 4}),
        ("spheres", "all runs come to rest", {"starts": 5, "rest": 5}, {"starts": 5, "rest": 4}),
        ("spheres", "some end at the solution", {"solved": 1}, {"solved": 0}),
        ("spheres", "some end elsewhere",
         {"starts": 5, "solved": 4}, {"starts": 5, "solved": 5}),
        ("other ends", "it is a local minimum", {"growth": -0.0011}, {"growth": -0.0009}),
        ("other ends", "its loss is larger", {"excess": 1e-9}, {"excess": 0.0}),
    ],
    "semantic-positional": [
        *(("derived", "the derived theory is the quadrature",
           {"loss": 0.0, "velocity": 0.0} | {part: 9e-11},
           {"loss": 0.0, "velocity": 0.0} | {part: 1.1e-10}) for part in ("loss", "velocity")),
        ("derived", "the initial speeds are the formula", {"start": 9e-11}, {"start": 1.1e-10}),
        *(("boundaries", "the boundary is that of the speeds, with its first-order shift",
           {"allowed": 0.2, "shift": sign * 0.19},
           {"allowed": 0.2, "shift": sign * 0.21}) for sign in (1.0, -1.0)),
        ("runs", "all runs decide", {"unfinished": 0}, {"unfinished": 1}),
        *(("runs", "samples per step do not move the boundary",
           {"off": sign * 0.049}, {"off": sign * 0.051}) for sign in (1.0, -1.0)),
        *(("runs", "its width is that of the noise",
           {"ratio": 1.39**sign}, {"ratio": 1.41**sign}) for sign in (1.0, -1.0)),
    ],
    "saad-solla-sgd": [
        ("with noise", "it is within the spread of fresh seeds",
         {"distance": 4.9, "allowed": 5.0}, {"distance": 5.1, "allowed": 5.0}),
        ("without noise", "it leaves the spread of fresh seeds",
         {"distance": 5.1, "allowed": 5.0}, {"distance": 4.9, "allowed": 5.0}),
    ],
}  # fmt: skip
