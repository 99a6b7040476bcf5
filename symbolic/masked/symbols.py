"""Symbols of masked image modelling; names follow Huang et al. 2024, Section 2.

``a`` is the unmasked area attention of an area (Section 3), ``rest = 1 - a`` its complement for p's
own area, ``copies`` the number of equal areas that share ``a``; ``g`` is the derivative of the loss
of one image in ``a`` and ``g_mean`` its average over all keys, weighted by attention.
"""

import sympy as sp

z, a, rest, copies = sp.symbols("z a rest copies", positive=True)
mass = sp.Symbol("mass", positive=True)
advantage = sp.Symbol("advantage", real=True)
g, g_mean = sp.symbols("g g_mean", real=True)

# p's own area n, another area m, and a key q.
z_n, a_n, z_m, a_m, s_q = sp.symbols("z_n a_n z_m a_m s_q", positive=True)
H, g_n, g_m = sp.symbols("H g_n g_m", real=True)
others = sp.Symbol("others", positive=True)
