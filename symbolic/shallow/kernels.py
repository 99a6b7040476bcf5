"""Nothing is emitted for this theory: its kernels are products of matrices of any size."""

from symbolic.core.source import Target

TARGETS: tuple[Target, ...] = ()
