# SPDX-License-Identifier: Apache-2.0
"""Print results as tables that the documentation can take over."""

from collections import abc
import importlib.metadata
import platform

from tests.faults import rabbitmq
from tests.faults import results
from tests.faults import scenarios
from tests.faults import stage as stages

_HEADINGS = ('fault', 'arm', 'calls', 'lost', 'doubled', 'out of order',
             'longest s', 'calm ms', 'fault ms', 'after ms', 'ratio')

LEGEND = f"""\
Each arm has a process of its own, all on the same broker at the same time,
and calls every {stages.FOREVER.pace * 1000:.0f} ms, the outbox every
{stages.OUTBOX.pace * 1000:.0f} ms; a call that takes longer delays the next.
Durable queues; one listener, which keeps order. The time of a fault includes
what it takes to bring it about and to end it. Doubled: received again. Out of
order: received for the first time after a later one. "> s": given up, blocked
for so long; such a call counts neither as made nor as lost. Milliseconds are
p99 of the calls in the calm, under the fault, and from its end on; the ratio
is fault to calm, marked with ! above {results.RATIO:g}."""

_BACKLOG_HEADINGS = ('fault', 'backlog', 'caught up after s', 'drain /s')

BACKLOG_LEGEND = """\
The backlog of the outbox, from the end of the fault to the arrival of its
last. The rate is that of the relay only if the listener keeps its connection;
elsewhere there is none."""


def versions() -> str:
    """Tell what has been measured with."""
    oslo_messaging = importlib.metadata.version('oslo.messaging')
    return (f'Python {platform.python_version()}, oslo.messaging '
            f'{oslo_messaging}, RabbitMQ {rabbitmq.version()}, '
            f'{platform.machine()}')


def table(headings: abc.Sequence[str],
          rows: abc.Iterable[abc.Sequence[str]]) -> str:
    """Return a simple table of reStructuredText."""
    lines = [tuple(headings), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = '  '.join('=' * width for width in widths)
    text = ['  '.join(cell.ljust(width) for cell, width
                      in zip(line, widths, strict=True)).rstrip()
            for line in lines]
    return '\n'.join([rule, text[0], rule, *text[1:], rule])


def outcomes(found: abc.Iterable[scenarios.Outcome]) -> str:
    """Return the table of all faults and arms."""
    return table(_HEADINGS, (
        (_name(outcome), arm.name, *_cells(record))
        for outcome in found for arm, record in outcome.records.items()))


def backlogs(found: abc.Iterable[scenarios.Outcome]) -> str:
    """Return the table of what the outbox did after each fault."""
    rows = []
    for outcome in found:
        if not outcome.records:
            continue  # it could not be measured
        record = outcome.records[stages.OUTBOX]
        connected = scenarios.FAULTS[outcome.fault].connected
        rows.append((_name(outcome), str(len(record.backlog)),
                     _number(record.caught_up, '.1f'),
                     _number(record.drain if connected else None, '.0f')))
    return table(_BACKLOG_HEADINGS, rows)


def _name(outcome: scenarios.Outcome) -> str:
    return f'{outcome.fault} {outcome.seconds:.1f} s'


def _cells(record: results.Record) -> list[str]:
    mark = ' !' if (record.ratio or 0) > results.RATIO else ''
    longest = f'{record.longest:.3f}'
    return [
        str(len(record.calls)), str(len(record.missing)),
        str(record.doubled), str(record.disordered),
        longest if record.blocked is None else f'> {longest}',
        _number(record.p99_within(record.calm), '.2f', 1000),
        _number(record.p99_fault, '.2f', 1000),
        _number(record.p99_within(record.after), '.2f', 1000),
        _number(record.ratio, '.1f') + mark,
    ]


def _number(value: float | None, form: str, scale: float = 1) -> str:
    return '-' if value is None else format(value * scale, form)
