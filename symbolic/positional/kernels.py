"""Emitted scalar kernels as named steps, derived from `margins` and `lemma_4_3`.

The steps of a kernel are chosen for small rounding errors. `identities` proves that they are the
same functions as the plain formulas.
"""

from functools import cache
from itertools import permutations

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.kernel import Kernel, Step, copysign, expm1, power, power_difference, powers
from symbolic.core.source import PACKAGE, Target
from symbolic.positional import attention, lemma_4_3, margins, scalars
from symbolic.positional import symbols as sym
from symbolic.positional.all_sets import affine_identities
from symbolic.positional.increments import MODEL
from symbolic.positional.symbols import (
    C,
    D,
    Gamma,
    Gamma_minus_Xi,
    Lambda,
    Lambda_minus_Gamma,
    O,
    T,
    Xi,
    alpha,
    bend,
    beta,
    c,
    c_gamma,
    c_rho,
    excess,
    gamma,
    kappa,
    n,
    nu,
    p,
    rho,
    s,
    slope,
    tau,
)

_DIFFERENCES = (Lambda_minus_Gamma, Gamma_minus_Xi)
_ROW_ARGUMENTS = (s, n, T, alpha, Lambda, Gamma, Xi, *_DIFFERENCES, C, D, kappa, tau, p, nu)
_scale = kappa * alpha
_same, _other, _g = sp.symbols("same_set other_sets g", positive=True)
_Gamma_over_tau, _Xi_over_tau = sp.symbols("Gamma_over_tau Xi_over_tau", positive=True)
_c_gamma_gamma, _c_gamma_rho, _c_rho_rho = _SECOND = sp.symbols(
    "c_gamma_gamma c_gamma_rho c_rho_rho", real=True
)
_own, _balance, _top = sp.symbols("own balance top", real=True)


def attention_weights() -> Kernel:
    """Return the kernel of the attention weights, with shifted exponents."""
    Z = sp.Symbol("Z", positive=True)
    order = {beta: sym.x_beta, gamma: sym.x_gamma, rho: sym.x_rho}
    steps = [(_top, sp.Max(beta, gamma, rho))]
    steps += [(x, sp.exp((name - _top) / tau)) for name, x in order.items()]
    steps += [(Z, sym.x_beta + (C - 1) * sym.x_gamma + (D - C) * sym.x_rho)]
    differences = []
    for x, y in ((beta, gamma), (gamma, rho)):
        relative = sp.Symbol(f"relative_{x}_{y}", real=True)
        size = -expm1(-sp.Abs(x - y) / tau)
        steps.append((relative, copysign(size, x - y)))
        difference = sp.Symbol(f"x_{x}_minus_x_{y}", real=True)
        steps.append((difference, sp.exp((sp.Max(x, y) - _top) / tau) * relative))
        differences.append(difference / Z)
    results = [*(x / Z for x in order.values()), *differences]
    names = ("Lambda", "Gamma", "Xi", "Lambda_minus_Gamma", "Gamma_minus_Xi")
    doc = """Attention weights on the invariant manifold (Section 4.1, above Lemma 4.3).

    Lambda = e^(beta/tau) / Z, Gamma = e^(gamma/tau) / Z, Xi = e^(rho/tau) / Z with
    Z = e^(beta/tau) + (C-1) e^(gamma/tau) + (D-C) e^(rho/tau). The exponents are shifted by their
    maximum; the differences Lambda - Gamma and Gamma - Xi keep their digits when they are small."""
    arguments = (beta, gamma, rho, tau, C, D)
    return Kernel("attention_weights", arguments, tuple(steps), tuple(zip(names, results)), doc)


class _act(sp.Function):
    """The activation as an undefined function for the chain rule."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return _act_slope(self.args[0])


class _act_slope(sp.Function):
    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return _act_bend(self.args[0])


class _act_bend(sp.Function):
    pass


def _chain_rule(*parameters: sp.Symbol) -> sp.Expr:
    """Return a derivative of act(kappa alpha c(gamma, rho)) in terms of the named steps.

    A factor act'(O) of an attention derivative is replaced by the excess, because the sum of these
    derivatives of kappa alpha c over all rows vanishes (`symbolic.positional.excess`).
    """
    c_function = sp.Function("c")(gamma, rho)
    row = sp.diff(_act(_scale * c_function), *parameters) if parameters else _act(c_function)
    attention_enters = any(parameter != alpha for parameter in parameters)
    names: dict[sp.Expr, sp.Expr] = {
        sp.diff(c_function, gamma, gamma): _c_gamma_gamma,
        sp.diff(c_function, gamma, rho): _c_gamma_rho,
        sp.diff(c_function, rho, rho): _c_rho_rho,
        sp.diff(c_function, gamma): c_gamma,
        sp.diff(c_function, rho): c_rho,
        _act_slope(_scale * c_function): excess if attention_enters else slope,
        _act_bend(_scale * c_function): bend,
    }
    for expression, name in names.items():
        row = row.subs(expression, name)
    return row.subs(c_function, c).subs(_scale * c, O)


def _row_steps() -> list[Step]:
    """Return the steps of the kernels of a row."""
    empty = margins.EMPTY_MARGIN
    same_sets = {(C - 1) * Gamma: _same, (D - C) * Xi: _other}
    c_gamma_stable = margins.d_gamma_stable(_balance).subs(Gamma / tau, _Gamma_over_tau)
    c_rho_stable = margins.d_rho_stable(_balance).subs(Xi / tau, _Xi_over_tau)
    second = [e.subs(same_sets) for e in margins.second_derivatives(c_gamma, c_rho)]
    return [
        (_same, (C - 1) * Gamma),
        (_other, (D - C) * Xi),
        (_own, margins.OWN_PART),
        (c, _own + Xi * T),
        (_Gamma_over_tau, Gamma / tau),
        (_Xi_over_tau, Xi / tau),
        (_balance, margins.BALANCE),
        (c_gamma, c_gamma_stable),
        (c_rho, c_rho_stable),
        *zip(_SECOND, second),
        (O, _scale * c),
        (slope, p * power(O, p - 1) + nu),
        (excess, p * power_difference(O, empty, _scale * _own, p - 1)),
        (bend, p * (p - 1) * power(O, p - 2)),
    ]


_SHARED_NAMES: dict[sp.Expr, str] = {
    _scale: "scale",
    Xi * T: "c_empty",
    power(O, p - 1): "O_power",
    _scale * excess: "pull",
    _scale * bend: "scaled_bend",
    kappa * (bend * O + excess): "mixed",
}

_ROW_DOC = """The row has coefficient s of w*, its set sums to n and all patches to T (label +1):
    c = Lambda s + Gamma (n - s) + Xi (T - n), O = kappa alpha c, act(x) = x^p + nu x.
    """
_EXCESS_DOC = """\
Where gamma or rho enters, act'(O) is replaced by its excess act'(O) - act'(O_empty) over a
    zero patch in an empty set, O_empty = kappa alpha Xi T: exact once summed over all rows,
    because the sum of all O does not depend on gamma and rho, and free of cancellation."""


def _used(steps: list[Step], results: list[sp.Expr]) -> tuple[Step, ...]:
    """Return the steps that the results depend on."""
    needed = set().union(*(r.free_symbols for r in results))
    used = []
    for name, expression in reversed(steps):
        if name in needed:
            used.append((name, expression))
            needed |= expression.free_symbols
    return tuple(reversed(used))


def row_gradient() -> Kernel:
    """Return the kernel of act(O) of one row and its first derivatives."""
    value = O * (power(O, p - 1) + nu)
    results = [value, *(_chain_rule(x) for x in (alpha, gamma, rho))]
    names = ("act(O)", "d_alpha", "d_gamma", "d_rho")
    doc = f"""Activation of one row of the attention and its derivatives in alpha, gamma, rho.

    {_ROW_DOC}{_EXCESS_DOC}"""
    steps = _used(_row_steps(), results)
    return Kernel(
        "row_gradient", _ROW_ARGUMENTS, steps, tuple(zip(names, results)), doc, _SHARED_NAMES
    )


def row_hessian() -> Kernel:
    """Return the kernel of the second derivatives of act(O) of one row."""
    pairs = [(alpha, alpha), (alpha, gamma), (alpha, rho), (gamma, gamma), (gamma, rho), (rho, rho)]
    results = [_chain_rule(*pair) for pair in pairs]
    doc = f"""Second derivatives of the activation of one row in alpha, gamma, rho.

    Order: (alpha alpha, alpha gamma, alpha rho, gamma gamma, gamma rho, rho rho).
    {_ROW_DOC}{_EXCESS_DOC}"""
    names = [f"{x} {y}" for x, y in pairs]
    steps = _used(_row_steps(), results)
    return Kernel(
        "row_hessian", _ROW_ARGUMENTS, steps, tuple(zip(names, results)), doc, _SHARED_NAMES
    )


def gamma_leading_term() -> Kernel:
    """Return the kernel of the leading term for gamma in Lemma 4.3."""
    steps = ((_g, Lambda + (C - 1) * Gamma), (O, _scale * _g))
    result = powers(lemma_4_3.gamma_leading(O, _g))
    doc = """Leading term of the gamma increment per learning rate and E[s(-F)] (Lemma 4.3).

    (C Gamma / tau) (kappa / D) alpha (1 - G/D) (p (kappa alpha G/D)^(p-1) + nu), the share of the
    signal set when the random sets cancel; g = G/D = Lambda + (C-1) Gamma."""
    arguments = (alpha, Lambda, Gamma, C, D, kappa, tau, p, nu)
    return Kernel("gamma_leading_term", arguments, steps, (("gamma", result),), doc)


def rho_leading_term() -> Kernel:
    """Return the kernel of the leading signal-set term for rho in Lemma 4.3."""
    steps = ((_g, Lambda + (C - 1) * Gamma), (O, _scale * _g))
    result = powers(lemma_4_3.rho_leading(O, _g))
    doc = """Leading signal term of the rho increment per learning rate and E[s(-F)] (Lemma 4.3).

    -(C Xi / tau) (kappa / D) alpha (G/D) (p (kappa alpha G/D)^(p-1) + nu), the share of the signal
    set when the random sets cancel; g = G/D = Lambda + (C-1) Gamma."""
    arguments = (alpha, Lambda, Gamma, Xi, C, D, kappa, tau, p, nu)
    return Kernel("rho_leading_term", arguments, steps, (("rho", result),), doc)


def kernels() -> tuple[Kernel, ...]:
    """Return all kernels, in the order of emission."""
    builders = (attention_weights, row_gradient, row_hessian, gamma_leading_term, rho_leading_term)
    return (*(build() for build in builders), *scalars.kernels())


def _in_order(expression: sp.Expr, order: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Evaluate Max, Abs and sign for beta, gamma and rho in a given descending order."""

    def first(difference: sp.Expr) -> sp.Expr:
        return next(name for name in order if difference.has(name))

    return (
        expression.replace(sp.Max, lambda *names: min(names, key=order.index))
        .replace(sp.sign, lambda x: x.coeff(first(x)))
        .replace(sp.Abs, lambda x: x * x.coeff(first(x)))
    )


@cache
def identities() -> dict[str, Identity]:
    """Return the identities of all emitted results with the plain formulas."""
    claims: dict[str, Identity] = {}
    for kernel in kernels():
        for index in range(len(kernel.results)):
            claims |= result_identities(kernel, index)
    for degree in (3, 5, 7):
        claims[f"power_difference at p = {degree}"] = _power_difference_identity(degree - 1)
    return claims


def result_identities(kernel: Kernel, index: int) -> dict[str, Identity]:
    """Return the identities of one result of a kernel."""
    name = kernel.results[index][0]
    if kernel.name == "attention_weights":
        plain, claims = attention.write_out(getattr(sym, name)), {}
        for order in permutations((beta, gamma, rho)):
            stable = _in_order(kernel.expanded(index), order)
            where = f"where {' >= '.join(map(str, order))}"
            largest = kernel.in_arguments(getattr(sym, f"x_{order[0]}"))
            claims[f"{name} {where}"] = Identity(stable, plain)
            claims[f"largest exponential is 1 {where}"] = Identity(
                _in_order(largest, order), sp.S.One
            )
        return claims
    if kernel.name.endswith("_leading_term"):  # from the model, not from the emitted formula
        plain = MODEL.signal_set(getattr(sym, name)).subs(sym.R, 0)
        margin = margins.at_patch(margins.MARGIN, "signal").subs(sym.R, 0)
        return {
            kernel.name: Identity(kernel.expanded(index), plain).map(attention.write_out),
            f"{kernel.name}, margin of the signal": Identity(kernel.in_arguments(O), margin),
        }
    if not kernel.name.startswith("row_") or kernel.name == "row_sum":
        return scalars.identities(kernel, index)
    claims = {f"{kernel.name}, {name}": _row_identity(kernel, index)}
    if kernel.name == "row_hessian":
        claims |= _model_identities(kernel, index)
    return claims


def _model_identities(kernel: Kernel, index: int) -> dict[str, Identity]:
    """Return that emitted second derivatives summed over all sets are those of F."""
    name = kernel.results[index][0]
    x, y = (getattr(sym, parameter) for parameter in name.split())
    row = attention.write_out(margins.activation(margins.MARGIN))
    slope = sp.diff(row, x, y, simplify=False)  # twice as fast
    difference = attention.write_out(kernel.expanded(index)) - slope
    return affine_identities(f"{kernel.name}, {name}, of the model", difference)


def _row_identity(kernel: Kernel, index: int) -> Identity:
    """Return that an emitted result of a row is a derivative of act(O), in excess form.

    The first derivatives of act(O) and of the margin O, and the second ones of c, which are proved
    in `margins`, are the functions that are differentiated and the share that the excess subtracts.
    """
    name = kernel.results[index][0]
    emitted = kernel.expanded(index)
    if name == "act(O)":
        return Identity(margins.activation(margins.MARGIN), emitted).map(attention.write_out)
    *first, last = (getattr(sym, x) for x in name.removeprefix("d_").split())
    O_first = dict(zip((alpha, gamma, rho), margins.margin_gradient()))
    if first:
        row = dict(zip((alpha, gamma, rho), margins.row_gradient()))[first[0]]
        O_last = margins.margin_hessian()[*first, last]
    else:
        row, O_last = margins.activation(margins.MARGIN), O_first[last]
    if any(x != alpha for x in (*first, last)):
        emitted += margins.activation_slope(margins.EMPTY_MARGIN) * O_last
    return Identity(row, emitted, last).map(attention.write_out)


def _power_difference_identity(degree: int) -> Identity:
    """Return that the emitted loop on symbols gives x^n - y^n."""
    x, y = x_0, y_0 = sp.symbols("x y", real=True)
    difference, n = x - y, degree
    while n % 2 == 0:
        difference, x, y, n = difference * (x + y), x**2, y**2, n // 2
    total = sum(x ** (n - 1 - j) * y**j for j in range(n))
    right = power_difference(x_0, y_0, x_0 - y_0, degree).rewrite(sp.Pow)
    return Identity(difference * total, right)


HEADER = '''\
"""Scalar kernels of the reduced dynamics (Jelassi et al. 2022, Section 4.1).

Generated by `python -m symbolic.emit` from the derivations in `symbolic`; do not edit. The notation
is that of `symbolic.positional.symbols`: Greek letters as words, tau the temperature, kappa the
output scale. All arguments are floats except the integers p and n of powers.
"""

import math

from dynamics.core.jit import kernel


@kernel
def power(x, n):
    """x^n for an integer n >= 0, by repeated squaring: the same bits compiled and in Python."""
    result = 1.0
    while n > 0:
        if n & 1:
            result *= x
        x *= x
        n >>= 1
    return result


@kernel
def power_difference(x, y, difference, n):
    """x^n - y^n for an integer n >= 0, given difference = x - y.

    While n is even, x^n - y^n = (x - y) (x + y) (x^n - y^n) / (x^2 - y^2), and x and y are
    replaced by their squares; for odd n, x^n - y^n = (x - y) (x^(n-1) + x^(n-2) y + ... + y^(n-1)).
    """
    while n > 0 and n & 1 == 0:
        difference *= x + y
        x *= x
        y *= y
        n >>= 1
    total = 0.0
    y_power = 1.0
    for _ in range(n):
        total = total * x + y_power
        y_power *= y
    return difference * total
'''

PLAIN_HEADER = '''\
"""Counts of patches and of pairs, in plain Python without a compiler, for numbers or arrays.

Generated by `python -m symbolic.emit` from the derivations in `symbolic`; do not edit. The notation
is that of `symbolic.positional.symbols`; the same functions are compiled in
`dynamics.positional._emitted`.
"""
'''

_EXCLUDED = (C, D, tau)
TARGETS = (
    Target(PACKAGE / "positional" / "_emitted.py", HEADER, kernels, excluded=_EXCLUDED),
    Target(
        PACKAGE / "positional" / "_sizes.py",
        PLAIN_HEADER,
        scalars.sizes,
        compiled=False,
        excluded=_EXCLUDED,
    ),
)
