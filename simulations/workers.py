"""Worker processes with progress messages, cancellation and crash recovery.

A process that dies costs its own job alone; pools of the standard library are lost as a whole.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple

#: Seconds after which the process of a cancelled job is killed, unless the job has ended.
GRACE = 0.4
#: Settings of numerical libraries for the number of threads; NPROC is that of XLA, below JAX.
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC",
)  # fmt: skip


class Cancelled(Exception):
    """The result of this job is not needed any more."""


class Event(NamedTuple):
    """An event in the life of a job: progress, or its end.

    The content is a progress message, a result (``done``), the sentence of an error (``failed``),
    or how the process ended (``died``), such as ``"exit code 3"``.
    """

    type: Literal["progress", "done", "failed", "died", "cancelled"]
    content: Any


class Channel:
    """Worker-side channel: report progress, receive cancellation."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def report(self, content: Any) -> None:
        """Send a progress message; raises Cancelled."""
        self.check()
        self._pipe.send(Event("progress", content))

    def check(self) -> None:
        """Raise Cancelled if the job is cancelled."""
        if self._pipe.poll():  # nothing else is sent during a job
            self._pipe.recv()
            raise Cancelled


#: Computes the result of a task in a worker process: a function that can be imported there.
Work = Callable[[Any, Channel], Any]


class Job:
    """A task in a pool, and the function that receives its events."""

    def __init__(self, task: Any, on_event: Callable[[Event], None], pool: WorkerPool) -> None:
        self.task, self._on_event, self._pool = task, on_event, pool
        self.cancelled = False

    def cancel(self) -> None:
        """Stop the job, waiting or running; it has no more events."""
        self._pool.cancel(self)

    def notify(self, event: Event) -> None:
        """Pass on an event, in a thread of the pool."""
        if not self.cancelled:
            self._on_event(event)


class WorkerPool:
    """Processes of one thread each (unless the environment sets another number).

    Jobs that find no idle process wait. Either :meth:`submit` jobs with a callback each, or iterate
    over the :meth:`events` of all tasks.

    Parameters
    ----------
    number
        Largest number of processes.
    work
        Computes the result of a task.
    """

    def __init__(self, number: int, work: Work) -> None:
        self.number, self.work = number, work
        self.lock, self.is_open = threading.RLock(), True
        self._waiting: deque[Job] = deque()
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._events: SimpleQueue[tuple[Any, Event]] = SimpleQueue()
        self._unfinished = 0

    def submit(self, task: Any, on_event: Callable[[Event], None], *, first: bool = False) -> Job:
        """Queue a task and return its job; ``first``: before the tasks that wait.

        ``on_event`` is called with the events of the job, in another thread.
        """
        job = Job(task, on_event, self)
        with self.lock:
            self._waiting.insert(0 if first else len(self._waiting), job)
            self._start_jobs()
        return job

    def cancel(self, job: Job) -> None:
        """Stop a job, waiting or running; it has no more events."""
        with self.lock:
            job.cancelled = True
            if job in self._waiting:
                self._waiting.remove(job)
            for worker in self._workers:
                worker.cancel(job)

    def events(self, tasks: Iterable[Any]) -> Generator[tuple[Any, Event], None, None]:
        """Yield pairs of task and event; the pool is closed at the end of the iteration.

        A task whose process died is not repeated, unless it is submitted with :meth:`retry`.
        """
        try:
            for task in tasks:
                self._add(task)
            while self._unfinished:
                task, event = self._events.get()
                self._unfinished -= event.type != "progress"
                yield task, event
        finally:
            self.close()

    def retry(self, task: Any) -> None:
        """Add a task to :meth:`events`, before the tasks that wait."""
        self._add(task, first=True)

    def _add(self, task: Any, *, first: bool = False) -> None:
        self._unfinished += 1
        self.submit(task, lambda event: self._events.put((task, event)), first=first)

    def close(self) -> None:
        """Kill the processes, idle or not."""
        with self.lock:
            self.is_open = False
            self._waiting.clear()
            workers = list(self._workers)
            for worker in workers:
                worker.process.kill()
        for worker in workers:
            worker.join()

    def _start_jobs(self) -> None:
        """Assign waiting jobs to idle or new workers; the lock is held."""
        while self.is_open and self._waiting:
            if not self._idle and len(self._workers) >= self.number:
                return
            worker = self._idle.pop() if self._idle else self._new_worker()
            if worker.has_ended:  # while it was idle
                self._workers.discard(worker)
            else:
                worker.start(self._waiting.popleft())

    def _new_worker(self) -> _Worker:
        worker = _Worker(self)
        self._workers.add(worker)
        return worker

    def job_ended(self, worker: _Worker) -> None:
        """Give the next job to a worker that has ended its own."""
        with self.lock:
            self._idle.append(worker)  # used first: it caches its last run
            self._start_jobs()

    def worker_ended(self, worker: _Worker) -> None:
        """Remove a worker whose process ended; a worker that was killed here is replaced."""
        with self.lock:
            self._workers.discard(worker)
            if worker in self._idle:
                self._idle.remove(worker)
            if self.is_open and worker.killed and len(self._workers) < self.number:
                self._idle.append(self._new_worker())
            self._start_jobs()


class _Worker:
    """A process, and a thread that receives its messages."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool, self.killed = pool, False
        self._job: Job | None = None
        context = multiprocessing.get_context("spawn")
        self._pipe, pipe_of_process = context.Pipe()
        self.process = context.Process(
            target=_run_jobs, args=(pipe_of_process, pool.work), daemon=True
        )
        with one_thread(), _interrupts_blocked():
            self.process.start()
        pipe_of_process.close()
        self._listener = threading.Thread(target=self._receive, daemon=True)
        self._listener.start()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended (only the listener collects it)."""
        return bool(wait([self.process.sentinel], timeout=0.0))

    def start(self, job: Job) -> None:
        """Begin a job; the listener notices if the process is dead."""
        self._job = job
        self._send((job.task,))

    def cancel(self, job: Job) -> None:
        """Cancel a job if it runs here; kill the process if it does not end in time."""
        if job is not self._job:
            return
        self._send(())
        timer = threading.Timer(GRACE, self._kill, (job,))
        timer.daemon = True
        timer.start()

    def _kill(self, job: Job) -> None:
        with self._pool.lock:
            if self._job is job:
                self.killed = True
                self.process.kill()

    def join(self) -> None:
        """Wait for the end of the process and of the listener."""
        if threading.current_thread() is not self._listener:
            self._listener.join()

    def _send(self, message: tuple[Any, ...]) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(message)

    def _receive(self) -> None:
        """Pass on events until the process ends."""
        while (event := self._next_event()) is not None:
            job = self._job
            if event.type != "progress":
                with self._pool.lock:
                    self._job = None
            if job is not None:
                job.notify(event)
            if event.type != "progress":
                self._pool.job_ended(self)
        self.process.join()
        self._pipe.close()
        with self._pool.lock:
            job, self._job = self._job, None
        self._pool.worker_ended(self)
        if job is not None and self._pool.is_open:
            code = self.process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            job.notify(Event("died", how))

    def _next_event(self) -> Event | None:
        try:
            event: Event = self._pipe.recv()
        except (EOFError, OSError):
            return None
        return event


def _run_jobs(pipe: Connection, work: Work) -> None:
    """Run jobs until the parent closes the pipe; Ctrl-C is left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(pipe)
    with contextlib.suppress(EOFError, OSError):
        while True:
            for task in pipe.recv():  # none: a cancellation that came too late
                pipe.send(_last_event(work, task, channel))


def _last_event(work: Work, task: Any, channel: Channel) -> Event:
    """Return the event that ends a job; the traceback of a defect is printed."""
    from simulations.cli import explain

    try:
        return Event("done", work(task, channel))
    except Cancelled:
        return Event("cancelled", None)
    except (BrokenPipeError, EOFError):  # the parent has ended
        raise
    except Exception as failure:
        explanation = explain(failure)
        if explanation is not None:
            return Event("failed", explanation[0])
        traceback.print_exc(file=sys.stderr)
        return Event("failed", f"a defect of patchdyn: {type(failure).__name__}: {failure}")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let numerical libraries of new processes use one thread, unless the environment sets more."""
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT: new processes inherit the mask, and Ctrl-C arrives here afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
