"""Processes that compute for a page: one run each, which can be withdrawn at any moment.

A run that is withdrawn hears of it the next time it tells or asks something, and its process serves
on. Where it does not hear within `GRACE` seconds, in one long computation, its process is ended and
another one takes its place.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from simulations.interrupts import held_back
from simulations.parallel import one_thread

#: Seconds that a withdrawn run has to hear of it.
GRACE = 0.4


class Withdrawn(Exception):
    """Nobody waits for this run any more."""


class Line:
    """What a run in a process talks to: it tells on the way, and hears that it is withdrawn."""

    def __init__(self, pipe: Connection, number: int) -> None:
        self._pipe, self._number = pipe, number

    def tell(self, content: Any) -> None:
        """Send something on the way; raises Withdrawn."""
        self.check()
        self._pipe.send(("told", self._number, content))

    def check(self) -> None:
        """Raise Withdrawn if nobody waits any more."""
        while self._pipe.poll():
            if self._pipe.recv() == ("withdraw", self._number):
                raise Withdrawn


#: Does a task in a process, which has to find it by import.
Work = Callable[[Any, Line], Any]


class Event(NamedTuple):
    """What became of a job: it ``told`` something, is ``done``, ``failed`` or ``died`` (why)."""

    kind: str
    content: Any


class Job:
    """A task that was handed over; after :meth:`withdraw` nothing more is heard of it."""

    def __init__(self, task: Any, hear: Callable[[Event], None], workers: Workers) -> None:
        self.task, self._hear, self._workers = task, hear, workers
        self.wanted = True
        self.member: _Member | None = None

    def withdraw(self) -> None:
        """Stop it, wherever it is."""
        self._workers.withdraw(self)

    def say(self, event: Event) -> None:
        """Pass on an event, from another thread than the page's."""
        if self.wanted:
            self._hear(event)


class Workers:
    """At most ``number`` processes, kept warm; jobs that find none idle wait their turn.

    Parameters
    ----------
    number
        How many processes, at most.
    work
        What does a task.
    """

    def __init__(self, number: int, work: Work) -> None:
        self.number, self.work = number, work
        self._lock = threading.RLock()
        self._idle: list[_Member] = []
        self._members: set[_Member] = set()
        self._waiting: deque[Job] = deque()
        self._jobs, self._open = 0, True

    def start(self, task: Any, hear: Callable[[Event], None]) -> Job:
        """Hand over a task; ``hear`` is called from another thread with what becomes of it."""
        job = Job(task, hear, self)
        with self._lock:
            self._waiting.append(job)
            self._serve()
        return job

    def withdraw(self, job: Job) -> None:
        """Let nothing more be heard of a job, and stop it."""
        with self._lock:
            job.wanted = False
            if job in self._waiting:
                self._waiting.remove(job)
            elif job.member is not None:
                job.member.withdraw()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        with self._lock:
            self._open = False
            self._waiting.clear()
            members = list(self._members)
            for member in members:
                member.process.kill()
        for member in members:
            member.wait()

    def _serve(self) -> None:
        """Give jobs that wait to members that are idle, or to new ones; the lock is held."""
        while self._open and self._waiting:
            if not self._idle and len(self._members) >= self.number:
                return
            member = self._idle.pop() if self._idle else self._new()
            if member.has_ended:  # while it was idle; its thread lets go of it
                self._members.discard(member)
                continue
            self._jobs += 1
            member.give(self._waiting.popleft(), self._jobs)

    def _new(self) -> _Member:
        member = _Member(self)
        self._members.add(member)
        return member

    def finished(self, member: _Member) -> None:
        """Take a member back that has done its job."""
        with self._lock:
            self._idle.append(member)  # the last one first: it remembers its run
            self._serve()

    def lost(self, member: _Member) -> None:
        """Let go of a member whose process ended; one that was ended here is replaced at once."""
        with self._lock:
            self._members.discard(member)
            if member in self._idle:
                self._idle.remove(member)
            if self._open and member.ended_here and len(self._members) < self.number:
                self._idle.append(self._new())
            self._serve()


class _Member:
    """A process, and a thread that listens to it."""

    def __init__(self, workers: Workers) -> None:
        context = multiprocessing.get_context("spawn")
        self._workers, self._number = workers, 0
        self._job: Job | None = None
        self._lock, self.ended_here = threading.Lock(), False
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, workers.work), daemon=True)
        with one_thread(), held_back():
            self.process.start()
        theirs.close()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; it is not collected here."""
        return bool(wait([self.process.sentinel], timeout=0.0))

    def give(self, job: Job, number: int) -> None:
        """Hand over a job; that the process is dead is noticed by the thread."""
        with self._lock:
            self._job, self._number, job.member = job, number, self
            self._send(("task", number, job.task))

    def withdraw(self) -> None:
        """Ask the process to give up its job; end it where that is not heard."""
        with self._lock:
            number = self._number
            self._send(("withdraw", number))
        timer = threading.Timer(GRACE, self._end, (number,))
        timer.daemon = True
        timer.start()

    def _end(self, number: int) -> None:
        with self._lock:
            if self._job is not None and self._number == number:
                self.ended_here = True
                self.process.kill()

    def wait(self) -> None:
        """Wait until the process has ended and the thread, which alone collects it, too."""
        if threading.current_thread() is not self._listener:
            self._listener.join()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(message)

    def _listen(self) -> None:
        """Pass on what the process says until it ends."""
        while True:
            try:
                kind, number, content = self._pipe.recv()
            except (EOFError, OSError):
                break
            with self._lock:
                job = self._job if number == self._number else None
                if kind != "told":
                    self._job = None
            if job is not None and kind != "withdrawn":
                job.say(Event(kind, content))
            if kind != "told":
                self._workers.finished(self)
        self._ended()

    def _ended(self) -> None:
        self.process.join()
        self._pipe.close()
        with self._lock:
            job, self._job = self._job, None
        self._workers.lost(self)
        if job is not None:
            code = self.process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            job.say(Event("died", f"the process that computed this run ended ({how})"))


def _work(pipe: Connection, work: Work) -> None:
    """Do tasks until the other end closes; Ctrl-C is for the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            kind, number, task = (*pipe.recv(), None)[:3]
            if kind == "task":  # a withdrawal may come when the task is done
                pipe.send(_done(Line(pipe, number), number, work, task))


def _done(line: Line, number: int, work: Work, task: Any) -> tuple[str, int, Any]:
    """Return the last message of a task; what nobody foresaw is told, its traceback printed."""
    from simulations.cli import explained

    try:
        return "done", number, work(task, line)
    except Withdrawn:
        return "withdrawn", number, None
    except (BrokenPipeError, EOFError):  # the page is gone
        raise
    except Exception as failure:
        told = explained(failure)
        if told is None:
            traceback.print_exc(file=sys.stderr)
            return "failed", number, f"a defect of patchdyn: {type(failure).__name__}: {failure}"
        return "failed", number, told[0]
