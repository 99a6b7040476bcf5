"""Ctrl-C within two seconds, also while compiled code runs.

Python tells its main thread of a signal between two of its own instructions: one long call of
compiled code is not interrupted. Another thread hears of the signal at once (kernels let other
threads run) and ends the process where the main thread has not been told in time. If it was told
inside of something that lets no exception out (a finalizer, a callback of a weak reference), it is
told again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from simulations.commands import INTERRUPTED

#: Seconds that the main thread has to come back from compiled code.
PATIENCE = 1.2
#: What the thread hears where a KeyboardInterrupt was lost: the number of no signal.
_LOST = 0


class Answer:
    """A handler of SIGINT that raises KeyboardInterrupt, and the thread that sees to it."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._ears, self._mouth = socket.socketpair()  # a pipe blocks on some systems
        self._mouth.setblocking(False)
        self._before = signal.signal(signal.SIGINT, self._tell)
        self._woken_before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        self._hook_before = sys.unraisablehook
        sys.unraisablehook = self._unraisable
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give everything back as it was."""
        sys.unraisablehook = self._hook_before
        signal.set_wakeup_fd(self._woken_before)
        signal.signal(signal.SIGINT, self._before)
        self._told.set()
        self._mouth.close()  # which ends the thread
        self._thread.join()
        self._ears.close()

    def _tell(self, number: int, frame: FrameType | None) -> NoReturn:
        self._told.set()
        raise KeyboardInterrupt

    def _unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self._hook_before(lost)
            return
        with contextlib.suppress(OSError):
            self._mouth.send(bytes([_LOST]))

    def _listen(self) -> None:
        while numbers := self._ears.recv(64):
            if _LOST in numbers:
                time.sleep(0.01)  # out of what lets no exception out
                interrupt_main()
            if signal.SIGINT in numbers and not self._told.wait(PATIENCE):
                _end()


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Let Ctrl-C end what is inside within two seconds, where it is to raise KeyboardInterrupt."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    answer = Answer()
    try:
        yield
    finally:
        answer.close()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Start processes that never hear of Ctrl-C, not even in their first moments.

    They inherit that the signal is blocked; it reaches this process afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end() -> NoReturn:
    """End this process and its children now; nothing that is being written is left half done."""
    for child in multiprocessing.active_children():
        child.kill()
    said = "patchdyn: interrupted within one long computation; what was stored before is kept\n"
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), said.encode())
    os._exit(INTERRUPTED)
