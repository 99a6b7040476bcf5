"""The gradient of the empirical risk (E) as one would write it with NumPy, PyTorch and JAX.

Each function takes a problem, data and weights as NumPy arrays and returns a callable that
evaluates loss, dA and dv once and waits for the result. All threads of the machine are theirs.
"""

import numpy as np


def with_numpy(problem, X, y, A, v):
    N, D, d = X.shape
    dtype = X.dtype.type
    A, v, y, flat = A.astype(dtype), v.astype(dtype), y.astype(dtype)[:, None], X.reshape(N * D, d)
    kappa, nu, tau, p = dtype(problem.kappa), dtype(problem.nu), dtype(problem.tau), problem.p

    def gradient():
        S = np.exp(A / tau)
        S /= S.sum(axis=1, keepdims=True)
        u = (flat @ v).reshape(N, D) * y
        O = kappa * (u @ S.T)  # noqa: E741
        power = O * O
        for _ in range((p - 1) // 2 - 1):
            power *= O * O
        F = (O * (power + nu)).sum(axis=1)
        s = 1 / (1 + np.exp(F))
        W = s[:, None] * (p * power + nu)
        Z = (W @ S) * y
        dv = -(kappa / N) * (Z.reshape(-1) @ flat)
        dS = -(kappa / N) * (W.T @ u)
        dA = S / tau * (dS - (S * dS).sum(axis=1, keepdims=True))
        np.fill_diagonal(dA, 0.0)
        return np.logaddexp(0, -F).mean(), dA, dv

    return gradient


def with_torch(problem, X, y, A, v, compiled=False):
    import torch

    X, y = torch.from_numpy(X), torch.from_numpy(y.astype(X.dtype))
    A = torch.from_numpy(A.astype(y.numpy().dtype)).requires_grad_()
    v = torch.from_numpy(v.astype(y.numpy().dtype)).requires_grad_()

    def risk(A, v):
        S = torch.softmax(A / problem.tau, dim=1)
        O = problem.kappa * ((X @ v) @ S.T)  # noqa: E741
        F = (O**problem.p + problem.nu * O).sum(dim=1)
        return torch.nn.functional.softplus(-y * F).mean()

    if compiled:
        risk = torch.compile(risk)

    def gradient():
        loss = risk(A, v)
        dA, dv = torch.autograd.grad(loss, (A, v))
        dA.fill_diagonal_(0.0)
        return loss.detach().numpy(), dA.numpy(), dv.numpy()

    return gradient


def with_jax(problem, X, y, A, v):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    dtype = X.dtype
    X, y, A, v = (jnp.asarray(array, dtype=dtype) for array in (X, y, A, v))

    def risk(A, v, X, y):
        S = jax.nn.softmax(A / problem.tau, axis=1)
        O = problem.kappa * ((X @ v) @ S.T)  # noqa: E741
        F = (O**problem.p + problem.nu * O).sum(axis=1)
        return jax.nn.softplus(-y * F).mean()

    @jax.jit
    def both(A, v, X, y):
        loss, (dA, dv) = jax.value_and_grad(risk, argnums=(0, 1))(A, v, X, y)
        return loss, dA - jnp.diag(jnp.diag(dA)), dv

    return lambda: tuple(np.asarray(part) for part in jax.block_until_ready(both(A, v, X, y)))
