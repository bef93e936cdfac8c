# SPDX-License-Identifier: Apache-2.0
"""Tests of the figures, which must be able to be bad."""

import typing

from tests import base
from tests.faults import results


def _calls(*took: float) -> list[results.Call]:
    """Return calls that begin at the seconds 0, 1, 2 ..."""
    return [results.Call(seq, float(seq), seconds)
            for seq, seconds in enumerate(took)]


def _arrivals(*seqs: int, at: float = 0.0) -> list[results.Arrival]:
    """Return arrivals, ten a second."""
    return [results.Arrival(seq, f'id{seq}', at + place / 10)
            for place, seq in enumerate(seqs)]


class TestRecord(base.TestCase):

    def record(self, calls: list[results.Call],
               arrivals: list[results.Arrival],
               **values: typing.Any) -> results.Record:
        """Return the record of a calm of 10 seconds, a fault and an end."""
        defaults = {'calm': results.Span(0, 10), 'fault': results.Span(10, 20),
                    'after': results.Span(20, 30), 'lifted': 19.0}
        return results.Record(calls, arrivals, **(defaults | values))

    def test_nothing_is_wrong(self):
        record = self.record(_calls(.1, .1, .1), _arrivals(0, 1, 2))
        self.assertEqual([], record.broken())
        self.assertEqual(0, record.doubled)

    def test_lost(self):
        record = self.record(_calls(.1, .1, .1, .1), _arrivals(0, 2))
        self.assertEqual([1, 3], record.missing)
        self.assertEqual(['2 lost: 1, 3'], record.broken())

    def test_doubled(self):
        """Doubling is allowed; it counts neither as lost nor as disorder."""
        record = self.record(_calls(.1, .1, .1), _arrivals(0, 1, 0, 1, 2))
        self.assertEqual(2, record.doubled)
        self.assertEqual([], record.broken())

    def test_doubled_under_another_message_id(self):
        """Then a consumer could not tell, which breaks a promise."""
        record = self.record(_calls(.1), [
            results.Arrival(0, 'one', 0.0), results.Arrival(0, 'two', 0.1)])
        self.assertEqual(['1 doubled under another message_id'],
                         record.broken())

    def test_out_of_order(self):
        record = self.record(_calls(.1, .1, .1, .1), _arrivals(0, 3, 1, 2))
        self.assertEqual(['2 out of order'], record.broken())

    def test_slow(self):
        record = self.record(_calls(.1, .7), _arrivals(0, 1))
        self.assertEqual(['a call took 0.70 s'], record.broken())

    def test_blocked(self):
        """A call that never returns is the longest, and is not lost."""
        record = self.record(_calls(.1), _arrivals(0), blocked=40.0)
        self.assertEqual(40.0, record.longest)
        self.assertEqual([], record.missing)

    def test_p99(self):
        """A call that reaches into the fault is the fault's."""
        took = [.1] * 9 + [5.0] + [.2] * 10 + [.3] * 5
        record = self.record(_calls(*took), _arrivals(*range(25)))
        self.assertEqual(.1, record.p99_within(record.calm))
        self.assertEqual(5.0, record.p99_fault)
        self.assertEqual(.3, record.p99_within(record.after))
        self.assertAlmostEqual(50, record.ratio)

    def test_p99_of_nothing(self):
        record = self.record([], [])
        self.assertIsNone(record.p99_fault)
        self.assertIsNone(record.ratio)

    def test_backlog(self):
        """What came before the end, or was called for after it, is none."""
        record = self.record(
            _calls(*[.1] * 25),
            _arrivals(0, 1, 2) + _arrivals(*range(3, 25), at=21.0))
        self.assertEqual(list(range(3, 20)),
                         [one.seq for one in record.backlog])
        self.assertAlmostEqual(21 + 1.6 - 20, record.caught_up)

    def test_backlog_without_what_the_broker_held(self):
        record = self.record(_calls(*[.1] * 20),
                             _arrivals(*range(20), at=21.0), queued=15)
        self.assertEqual(5, len(record.backlog))

    def test_drain(self):
        """It takes at least twenty, which ten a second have."""
        calls = [results.Call(seq, 10 + seq / 5, .1) for seq in range(50)]
        self.assertAlmostEqual(10, self.record(
            calls, _arrivals(*range(50), at=21.0)).drain)
        self.assertIsNone(self.record(
            calls[:19], _arrivals(*range(19), at=21.0)).drain)
        self.assertIsNone(self.record(calls, []).drain)
