"""A Dask cluster, for when one machine is outgrown: one task per block, written by the client.

Tasks are pure and return their rows: a worker that dies loses nothing but time, since the
scheduler gives its tasks to another, and nothing is written twice.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from simulations.sweep.cells import Row, compile_kernels, measure_cells, nothing
from simulations.sweep.stamp import stamp
from simulations.system import FAILED, System

_CONNECT_SECONDS = 10


class ClusterError(Exception):
    """The cluster cannot be used; one sentence for a person."""


class OtherCode(Exception):
    """A worker does not run what the client runs; says what differs."""


_compiled = False


def work(theory: System, cells: Sequence[Mapping[str, Any]], wanted: dict[str, str]) -> list[Row]:
    """Compute a block on a worker, unless its code is another than the client's."""
    global _compiled
    mine = stamp(theory)
    if mine != wanted:
        raise OtherCode(" and ".join(key for key in wanted if mine.get(key) != wanted[key]))
    if not _compiled:
        compile_kernels(theory)
        _compiled = True
    return measure_cells(theory, cells)


class Cluster:
    """Workers behind a scheduler of Dask distributed.

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
        # what becomes of the cluster is told in one sentence here, not in Dask's tracebacks
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

        wanted, cells = stamp(self.theory), dict(blocks)
        futures = {
            self.client.submit(work, self.theory, list(block), wanted, pure=False): number
            for number, block in blocks
        }
        try:
            for future in as_completed(list(futures), loop=self.client.loop):
                number = futures.pop(future)
                try:
                    rows = future.result()
                except KilledWorker:
                    message = "the workers of the cluster died repeatedly in this block"
                    rows = [nothing(self.theory, FAILED, message) for _ in cells[number]]
                yield number, rows
        except (CancelledError, OSError) as loss:
            raise ClusterError(f"the scheduler at {self.address} is lost") from loss
        except (OtherCode, ImportError) as difference:
            raise ClusterError(
                f"a worker of {self.address} runs other code ({difference}): install the same "
                "patchdyn, and the same libraries, on all machines"
            ) from None
        finally:
            for future in futures:
                with contextlib.suppress(Exception):
                    future.cancel()

    def close(self) -> None:
        """Leave the cluster to itself."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
