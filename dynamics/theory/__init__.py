"""Numerics of user-defined theories: data orbits, compiled risk, certified bounds, dense oracle.

The input is plain arrays and names. This package depends neither on SymPy nor on the language of
`symbolic.theory`.
"""
