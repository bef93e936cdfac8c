# SPDX-License-Identifier: Apache-2.0
"""A process that a test starts, with what it logs, and its end."""

from collections import abc
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

import fixtures
from oslo_utils import timeutils
from testtools import content
from testtools import content_type

#: Seconds after which something that should have happened has not.
LONG = 120

#: How many characters from the end of a log are shown.
_TAIL = 6000


class Child(fixtures.Fixture):
    """A process that lives no longer than the fixture.

    :param command: its name and arguments.
    :param environment: what is added to this process's own, which lends it
        no OS_ variable: oslo.config takes those for options.
    """

    def __init__(self, *command: str,
                 environment: abc.Mapping[str, str]) -> None:
        super().__init__()
        self._command = command
        self._environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith('OS_')} | environment

    def _setUp(self) -> None:
        self._log = pathlib.Path(tempfile.mkdtemp(), 'log')
        with self._log.open('wb') as output:
            # In a session of its own, so that its children end with it.
            self._process = subprocess.Popen(
                self._command, env=self._environment,
                stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(self.kill)
        name = pathlib.Path(self._command[0]).name
        self.addDetail(f'{name} {self._process.pid}', content.Content(
            content_type.UTF8_TEXT, lambda: [self._tail().encode()]))

    def log(self) -> str:
        """Return all that the process has written so far."""
        return self._log.read_text(errors='replace')

    def _tail(self) -> str:
        return ' '.join(self._command) + '\n' + self.log()[-_TAIL:]

    def kill(self) -> None:
        """Kill the process and its children; twice is once."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def finish(self) -> None:
        """Wait until the process has ended well."""
        try:
            status: object = self._process.wait(LONG)
        except subprocess.TimeoutExpired:
            status = f'nothing for {LONG} seconds'
        if status != 0:
            raise AssertionError(f'Ended with {status}: {self._tail()}')

    def wait_for(self, pattern: str, count: int = 1) -> list[str]:
        """Wait until the log matches so often, and return the matches."""
        never = threading.Event()
        with timeutils.StopWatch(LONG) as timer:
            while len(found := re.findall(pattern, self.log())) < count:
                if timer.expired() or self._process.poll() is not None:
                    raise AssertionError(
                        f'After {timer.elapsed():.0f} seconds, with status '
                        f'{self._process.returncode}, "{pattern}" was found '
                        f'{len(found)} times, not {count}: {self._tail()}')
                never.wait(0.1)
        return found
