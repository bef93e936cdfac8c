# SPDX-License-Identifier: Apache-2.0
"""A process of this package, which takes orders and reports as JSON lines."""

from collections import abc
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import typing

import fixtures
from oslo_utils import timeutils

#: Seconds after which something that should have happened has not.
LONG = 60

#: How many characters from the end of a log are shown.
_TAIL = 3000

_ROOT = pathlib.Path(__file__).parents[2]


def wait_until(condition: abc.Callable[[], bool], timeout: float) -> bool:
    """Wait for a condition, and tell whether it came true in time."""
    never = threading.Event()
    with timeutils.StopWatch(timeout) as timer:
        while not condition():
            if timer.expired():
                return False
            never.wait(0.05)
    return True


class Child(fixtures.Fixture):
    """A process that lives no longer than the fixture.

    :param module: what it runs; arguments follow.
    :param see: called with each report, in a thread of its own.
    """

    def __init__(self, module: str, *arguments: object,
                 see: abc.Callable[[dict[str, typing.Any]], None]) -> None:
        super().__init__()
        self._module = module
        self._arguments = [str(argument) for argument in arguments]
        self._see = see

    def _setUp(self) -> None:
        self._log = pathlib.Path(self.useFixture(fixtures.TempDir()).path,
                                 'log')
        # An OS_ variable of the caller would be an option of oslo.config's.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith('OS_')}
        with self._log.open('wb') as log:
            # In a group of its own, so that an interrupt at the terminal
            # does not end it before it is told to.
            self._process = subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-m', self._module,
                 *self._arguments], cwd=_ROOT, env=environment, text=True,
                bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, start_new_session=True)
        self.addCleanup(self.kill)
        self._ready = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in typing.cast(typing.TextIO, self._process.stdout):
            try:
                report = json.loads(line)
            except ValueError:
                continue  # the half line of one that was killed
            if 'ready' in report:
                self._ready = True
            else:
                self._see(report)

    def wait_until_ready(self) -> None:
        """Wait until it can take orders."""
        if not wait_until(lambda: self._ready or self.ended, LONG):
            raise AssertionError(f'{self} is not ready after {LONG} seconds: '
                                 f'{self.tail()}')
        if self.ended:
            raise AssertionError(f'{self} ended with '
                                 f'{self._process.returncode}: {self.tail()}')

    def tell(self, *order: object) -> None:
        """Give an order."""
        try:
            print(*order, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise AssertionError(f'{self} is gone, and cannot '
                                 f'{order}: {self.tail()}') from None

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def finish(self, timeout: float = 10) -> bool:
        """Let it end; return whether it did so by itself, in time."""
        try:
            typing.cast(typing.TextIO, self._process.stdin).close()
        except BrokenPipeError:
            pass
        by_itself = wait_until(lambda: self.ended, timeout)
        self.kill()
        return by_itself

    def kill(self) -> None:
        """Kill it, and read the last of its reports; twice is once."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._reader.join(LONG)

    def tail(self) -> str:
        """Return the end of what it has logged."""
        return self._log.read_text(errors='replace')[-_TAIL:]

    def __str__(self) -> str:
        return ' '.join([self._module, *self._arguments])
