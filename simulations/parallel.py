"""Work side by side, in processes of their own: the death of any of them costs its task alone.

What a process answers comes back at once, so that nothing else is lost with it. Pools of the
standard library are lost as a whole when one of their processes dies.
"""

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from simulations.interrupts import held_back

#: What sets the number of threads of numerical libraries; NPROC that of XLA, below JAX.
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC",
)  # fmt: skip

Task = TypeVar("Task")
#: Does a task in a process, which has to find it by import: takes the task and a function that
#: tells something on the way, and returns the result.
Work = Callable[[Task, Callable[[Any], None]], Any]


class Event(NamedTuple, Generic[Task]):
    """What became of a task: something was told, or it is done with a result, or its process died.

    The content of a death is how the process ended, such as ``"exit code 3"``.
    """

    kind: Literal["told", "done", "died"]
    task: Task
    content: Any


class Team(Generic[Task]):
    """Processes of one thread each (unless the environment says otherwise), one task at a time.

    Parameters
    ----------
    number
        How many processes, at most.
    work
        What does a task.
    """

    def __init__(self, number: int, work: Work[Task]) -> None:
        self.number, self.work = number, work
        self._waiting: deque[Task] = deque()
        self._members: list[_Member[Task]] = []

    def events(self, tasks: Iterable[Task]) -> Generator[Event[Task], None, None]:
        """Yield what becomes of the tasks; the processes end with the iterator, whatever ends it.

        A task whose process died is not repeated, unless it is given :meth:`again`.
        """
        self._waiting = deque(tasks)
        try:
            while True:
                idle = [member for member in self._members if not member.busy]
                while self._waiting and (idle or len(self._members) < self.number):
                    if not idle:
                        self._members.append(_Member(self.work))
                    member = idle.pop() if idle else self._members[-1]
                    member.give(self._waiting.popleft())
                busy = {member.pipe: member for member in self._members if member.busy}
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    event = busy[pipe].answer()  # type: ignore[index]
                    if event.kind == "died":
                        self._members.remove(busy[pipe])  # type: ignore[index]
                    yield event
        finally:
            self.close()

    def again(self, task: Task) -> None:
        """Put a task before those that wait."""
        self._waiting.appendleft(task)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for member in self._members:
            member.process.kill()
        for member in self._members:
            member.end()
        self._members = []


class _Member(Generic[Task]):
    """A process, a pipe to it, and the task that it has been given and not finished."""

    def __init__(self, work: Work[Task]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=False)
        with one_thread(), held_back():
            self.process.start()
        theirs.close()
        self.busy = False

    def give(self, task: Task) -> None:
        """Hand over a task; that the process is dead is noticed when its answer is read."""
        self.task, self.busy = task, True
        with contextlib.suppress(OSError):
            self.pipe.send(task)

    def answer(self) -> Event[Task]:
        """Return what the process says, or how it ended."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            self.end()
            code = self.process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Event("died", self.task, how)
        self.busy = kind != "done"
        return Event(kind, self.task, content)

    def end(self) -> None:
        """Let go of a process that has ended or is about to."""
        self.pipe.close()
        self.process.join()


def _serve(pipe: Connection, work: Work[Any]) -> None:
    """Do tasks until the other end closes; Ctrl-C is for the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(("done", work(pipe.recv(), lambda content: pipe.send(("told", content)))))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Start processes whose numerical libraries use one thread each, unless told otherwise."""
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
