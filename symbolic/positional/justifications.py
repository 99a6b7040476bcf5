"""Justifications of the displayed equations of the paper's argument, for `patchdyn derive`.

An equation is a definition or follows from identities of a proof. ``derivation: identity`` refers
to an identity of another derivation.
"""

DEFINITION = "by definition"

_EXCHANGES = "pairs of one set", "pairs of different sets", "two orbits of the exchanges"
_SUM = "lemma-4.1: c = Lambda s + Gamma (n - s) + Xi (T - n)"
_PATCHES = "lemma-4.1: F depends on the data only through the types of the sets"
_DESCENT = " = -(eta/N) d ell, "
_OUTSIDE = "Delta ", f"{_DESCENT}outside the sum over the random sets"
_EACH_SET = "Delta ", f"{_DESCENT}each random set"

#: Identities that prove an equation, by derivation and equation; empty for a definition.
JUSTIFICATIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "full-model": {
        "S_ij": (),
        "O_i": (),
        "F": (),
        "dL_dA_ij": ("d loss / d theta", "lemma-4.1: dF/dA_kl at any A, v and X"),
        "dL_dv": ("d loss / d theta", "lemma-4.1: dF/dv_t at any A, v and X"),
    },
    "attention": {
        "Lambda": (),
        "Gamma": (),
        "Xi": (),
        "G": (),
        "row_sum": ("rows of S sum to 1",),
        **{
            f"d{weight}_d{parameter}": (f"d {weight} / d {parameter}",)
            for weight in ("Lambda", "Gamma", "Xi", "G")
            for parameter in ("gamma", "rho")
        },
    },
    "margins": {
        "O_signal": ("signal margin", _SUM),
        **{f"O_{patch}": (_SUM,) for patch in ("plus", "minus", "zero")},
        "h": (_PATCHES,),
        **{
            f"{name}{parameter}": (f"d act(O) / d {parameter}",)
            for parameter in ("alpha", "gamma", "rho")
            for name in ("k_", "dh_d")
        },
        "c": (_SUM,),
        "c_gamma": ("d c / d gamma",),
        "c_rho": ("d c / d rho",),
        "c_gamma_stable": ("stable gamma derivative",),
        "c_rho_stable": ("stable rho derivative",),
        **{
            f"c_{first}_{second}": (f"d2 c / d {first} d {second}",)
            for first, second in (("gamma", "gamma"), ("gamma", "rho"), ("rho", "rho"))
        },
    },
    "lemma-4.1": {
        "dF_dA_kl": ("dF/dA_kl at any A, v and X",),
        "dL_dA_same": (*_EXCHANGES, "dL/dA_ij, same set = (d ell/d gamma) / (D (C-1))"),
        "dL_dA_different": (*_EXCHANGES, "dL/dA_ij, different sets = (d ell/d rho) / (D (D-C))"),
    },
    "lemma-4.2": {
        "dF_dv_t": ("lemma-4.1: dF/dv_t at any A, v and X",),
        "dL_dv_parallel": ("F contains no noise at v_perp = 0", "dL/dv along w* = d ell/d alpha"),
        "dL_dv_perp": ("dF/dv_perp is odd in the noise",),
    },
    "lemma-4.3": {
        **{
            f"{name}_{parameter}": tuple(f"{what}{parameter}{rest}" for what, rest in proved)
            for parameter in ("alpha", "gamma", "rho")
            for name, proved in (
                ("delta", (_OUTSIDE, _EACH_SET)),
                ("signal", (("signal set, ", ""),)),
                ("h", (_EACH_SET, ("margins: d act(O) / d ", ""))),
            )
        },
        **{
            f"{name}_{weight}": (f"Delta {weight}, {what}",)
            for weight in ("Lambda", "Gamma", "Xi", "G")
            for name, what in (("delta", "chain rule"), ("exact", "one step of descent"))
        },
        **{
            f"{name}_{parameter}{end}": (f"{what}, {parameter}{rest}",)
            for parameter in ("gamma", "rho")
            for name, end, what, rest in (
                ("leading", "", "signal set at R = 0", ""),
                ("leading", "_excess", "signal set at R = 0", ", excess form"),
                ("polylog", "", "form of Lemma 4.3", ""),
                ("isolated", "", "isolated random set", ""),
            )
        },
        "leading_rho_over_gamma": ("leading rho over gamma",),
        "ratio": ("measured factor of the lemma, ratio",),
        "measured_gamma": ("measured factor of the lemma, gamma",),
        "measured_rho": tuple(
            f"measured factor of the lemma, |rho|, rho {sign} 0" for sign in ("<", ">")
        ),
    },
    "excess": {
        "sum_of_margins": ("margins, one random set", "margins, signal set", "margins, all sets"),
        "O_empty": (_SUM,),
        "excess": ("excess = slope - slope of the empty set",),
        **{
            f"d_{parameter}": (
                f"d margins / d {parameter}, all sets",
                f"an empty set adds nothing ({parameter})",
            )
            for parameter in ("gamma", "rho")
        },
    },
}


def justification(name: str, equation: str) -> str:
    """Return the justification of an equation as a phrase; empty if there is none."""
    identities = JUSTIFICATIONS.get(name, {}).get(equation)
    if identities is None:
        return ""
    if not identities:
        return DEFINITION
    return "decided: " + "; ".join(
        f"{identity.partition(': ')[2]} (in {identity.partition(': ')[0]})"
        if identity.partition(": ")[0] in JUSTIFICATIONS
        else identity
        for identity in identities
    )
