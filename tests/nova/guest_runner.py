# SPDX-License-Identifier: Apache-2.0
"""One run of Nova's own tests, with the hook or without, for guest.py."""

import collections
import json
import logging
import pathlib
import sys
import typing
import unittest

import testtools

from tests.nova import facts
from tests.nova import process


class Result(testtools.TestResult):
    """Keep the outcome of each test, and why it was not a success."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, tuple[str, str]] = {}

    def _keep(self, outcome: str, test: typing.Any, error: typing.Any = None,
              details: typing.Any = None) -> None:
        text = ''
        if error or details:
            text = self._err_details_to_string(test, error, details)
        self.outcomes[test.id()] = outcome, text

    def addSuccess(self, test: typing.Any, details: typing.Any = None) -> None:
        self._keep('success', test)

    def addError(self, test: typing.Any, err: typing.Any = None,
                 details: typing.Any = None) -> None:
        self._keep('error', test, err, details)

    def addFailure(self, test: typing.Any, err: typing.Any = None,
                   details: typing.Any = None) -> None:
        self._keep('failure', test, err, details)

    def addSkip(self, test: typing.Any, reason: typing.Any = None,
                details: typing.Any = None) -> None:
        self._keep('skip', test)

    def addExpectedFailure(self, test: typing.Any, err: typing.Any = None,
                           details: typing.Any = None) -> None:
        self._keep('expected failure', test)

    def addUnexpectedSuccess(self, test: typing.Any,
                             details: typing.Any = None) -> None:
        self._keep('unexpected success', test)


class Hook:
    """The hook for one run: installed, engaged and still there at the end."""

    def __init__(self) -> None:
        self.sent: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self._errors: list[logging.LogRecord] = []

    def install(self) -> None:
        """Install it, and compare what is to be seen of Nova's objects."""
        from nova import objects
        objects.register_all()
        self._theirs = facts.entries()
        before = facts.facts()
        from compute_notify import nova as room
        room.install()
        self._expect_facts(before, 'install')
        import compute_notify.objects  # noqa: F401
        self._expect_facts(before, 'the import of compute_notify.objects')
        self._ours = facts.entries()
        self._listen()

    def check(self) -> None:
        """Look at the classes after the tests, and at what was sent."""
        from compute_notify import nova as room
        self._expect(room.is_installed(), 'the hook is not installed')
        for key, entry in facts.entries().items():
            self._expect(entry is self._ours[key],
                         f'{key} is not what was installed')
            self._expect(entry is not self._theirs[key],
                         f'{key} was never replaced')
        for action in ('create', 'update', 'delete'):
            self._expect(self.sent[f'compute_node.{action}'],
                         f'no compute_node.{action} was sent')
        for record in self._errors:
            self._expect(False, record.getMessage())

    def _listen(self) -> None:
        """Count what is sent, and keep what went wrong and was contained.

        Most of Nova's tests have a notifier without any driver, which would
        leave the hook off.
        """
        from compute_notify.nova import emitter
        from nova import rpc
        emit = emitter.NovaEmitter.emit

        def counting(this: typing.Any, context: typing.Any,
                     what: typing.Any) -> None:
            emit(this, context, what)
            self.sent[what.event_type] += 1

        emitter.NovaEmitter.emit = counting
        emitter.NovaEmitter.is_on = lambda this: rpc.NOTIFIER is not None
        handler = logging.Handler(logging.ERROR)
        handler.emit = self._errors.append
        logging.getLogger('compute_notify').addHandler(handler)

    def _expect_facts(self, before: dict[str, typing.Any], what: str) -> None:
        after = facts.facts()
        for name in before:
            self._expect(before[name] == after[name],
                         f'{what} changed {name}: {before[name]} became '
                         f'{after[name]}')

    def _expect(self, condition: object, otherwise: str) -> None:
        if not condition:
            self.wrong.append(otherwise)


def main(arm: str, path: str, *modules: str) -> None:
    """Run the modules' tests and write the report."""
    process.choose_concurrency()
    hook = Hook()
    if arm == 'installed':
        hook.install()
    result = Result()
    result.startTestRun()
    unittest.TestLoader().loadTestsFromNames(modules).run(result)
    result.stopTestRun()
    if arm == 'installed':
        hook.check()
    pathlib.Path(path).write_text(json.dumps({
        'outcomes': result.outcomes, 'wrong': hook.wrong,
        'sent': hook.sent}))


if __name__ == '__main__':
    main(*sys.argv[1:])
