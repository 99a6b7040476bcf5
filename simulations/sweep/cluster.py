"""Computation of a sweep on a Dask cluster, one task per block.

Tasks are pure functions that return their rows, and only the client writes files. If a worker dies,
the scheduler assigns its tasks to another worker.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from simulations.case import FAILED
from simulations.sweep.cells import Row, compile_kernels, empty_row, measure_cells, sweep_stamp
from simulations.system import System

_CONNECT_SECONDS = 10


class ClusterError(Exception):
    """The cluster cannot be used; the message is one sentence."""


class DifferentCode(Exception):
    """A worker has another version of the code than the client; the message names the parts."""


#: Whether this worker has compiled its kernels.
_compiled = False


def work(
    theory: System, cells: Sequence[Mapping[str, Any]], client_stamp: dict[str, str]
) -> list[Row]:
    """Compute a block on a worker; raises DifferentCode if its stamp differs from the client's."""
    global _compiled
    stamp = sweep_stamp(theory)
    if stamp != client_stamp:
        differing = (key for key in client_stamp if stamp.get(key) != client_stamp[key])
        raise DifferentCode(" and ".join(differing))
    if not _compiled:
        compile_kernels(theory)
        _compiled = True
    return measure_cells(theory, cells)


class Cluster:
    """Workers of a scheduler of Dask distributed.

    Parameters
    ----------
    theory
        Theory of the sweep.
    address
        Address of the scheduler.

    Raises
    ------
    ClusterError
        If Dask is not installed or there is no scheduler at the address.
    """

    def __init__(self, theory: System, address: str) -> None:
        self.theory, self.address = theory, address
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError(
                "--scheduler needs Dask, which is not installed: pip install 'patchdyn[cluster]'"
            ) from None
        # errors of the cluster are reported as one sentence, without the tracebacks of Dask
        logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
        try:
            self.client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as failure:
            reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
            raise ClusterError(f"no scheduler answers at {address}: {reason}") from None

    def results(
        self, blocks: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]
    ) -> Iterator[tuple[int, list[Row]]]:
        """Yield (number, rows) of the blocks as they are finished, in any order."""
        from distributed import KilledWorker, as_completed

        stamp, cells = sweep_stamp(self.theory), dict(blocks)
        futures = {
            self.client.submit(work, self.theory, list(block), stamp, pure=False): number
            for number, block in blocks
        }
        try:
            for future in as_completed(list(futures), loop=self.client.loop):
                number = futures.pop(future)
                try:
                    rows = future.result()
                except KilledWorker:
                    message = "the workers of the cluster died repeatedly in this block"
                    rows = [empty_row(self.theory, FAILED, message) for _ in cells[number]]
                yield number, rows
        except (CancelledError, OSError) as loss:
            raise ClusterError(
                f"the connection to the scheduler at {self.address} is lost"
            ) from loss
        except (DifferentCode, ImportError) as difference:
            raise ClusterError(
                f"a worker of {self.address} runs different code ({difference}): install the same "
                "version of patchdyn and of its libraries on all machines"
            ) from None
        finally:
            for future in futures:
                with contextlib.suppress(Exception):
                    future.cancel()

    def close(self) -> None:
        """Disconnect from the cluster."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
