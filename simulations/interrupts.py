"""Handle Ctrl-C within five seconds, also while compiled code runs.

CPython runs signal handlers in the main thread between bytecode instructions, so that a long call
into compiled code delays them. A watchdog thread is woken through a socket pair and ends the
process if the main thread has not raised `KeyboardInterrupt` in time. The watchdog raises the
interrupt again if it was lost in a finalizer or in a callback of a weak reference.
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

#: Seconds that the main thread has to return from compiled code.
PATIENCE = 3.0
#: Message to the watchdog that a KeyboardInterrupt was lost; it is not the number of a signal.
_LOST = 0


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """End the block on Ctrl-C within seconds, unless a custom handler of SIGINT is installed."""
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not default or threading.current_thread() is not threading.main_thread():
        yield
        return
    handled, hook = threading.Event(), sys.unraisablehook
    receiver, sender = socket.socketpair()  # a pipe blocks on some systems
    sender.setblocking(False)

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        handled.set()
        raise KeyboardInterrupt

    def on_unraisable(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            hook(lost)
            return
        with contextlib.suppress(OSError):
            sender.send(bytes([_LOST]))

    signal.signal(signal.SIGINT, interrupt)
    descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    sys.unraisablehook = on_unraisable
    watchdog = threading.Thread(target=_watch, args=(receiver, handled), daemon=True)
    watchdog.start()
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        handled.set()
        sender.close()  # ends the watchdog
        watchdog.join()
        receiver.close()


def _watch(receiver: socket.socket, handled: threading.Event) -> None:
    """End the process if the main thread does not handle SIGINT in time."""
    while numbers := receiver.recv(64):
        if _LOST in numbers:
            time.sleep(0.01)  # until the finalizer has ended
            interrupt_main()
        if signal.SIGINT in numbers and not handled.wait(0.2):
            _wake_main_thread()
            if not handled.wait(PATIENCE):
                _end()


def _wake_main_thread() -> None:
    """Interrupt a system call of the main thread: the signal may have reached another thread."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)


def _end() -> NoReturn:
    """Kill this process and its children; files stay intact: they are replaced atomically."""
    for child in multiprocessing.active_children():
        child.kill()
    text = "patchdyn: interrupted during a long computation; results stored before are kept\n"
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), text.encode())
    os._exit(INTERRUPTED)
