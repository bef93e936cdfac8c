# SPDX-License-Identifier: Apache-2.0
"""What a call costs with the outbox, and with messagingv2 on a broker."""

from __future__ import annotations

from collections import abc
import contextlib
import json
import pathlib
import tempfile

from oslo_config import cfg
import oslo_messaging

from bench import rounds
from compute_notify.outbox import process
from tests import base
from tests.functional import broker
from tests.functional import servers

_TOPIC = 'compute_notify_bench'


def run(plan: rounds.Plan | None) -> abc.Iterator[str]:
    """Measure and return a table.

    The relays are off, so that what is timed is the call alone.

    :param plan: how much to measure, if not as much as is usual here.
    """
    plan = plan or rounds.Plan(rounds=9, batches=5, calls=200)
    sample = base.sample('update')['payload']
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as at:
        at.callback(broker.delete, f'{_TOPIC}.info')
        at.callback(process.shut_all)
        arms = [_arm(at, sample, pathlib.Path(folder), name, driver, more)
                for name, driver, more in (
                    ('noop', 'noop', ''),
                    ('outbox', 'outbox', 'durability = process'),
                    ('outbox, durability = power', 'outbox',
                     'durability = power'),
                    ('messagingv2', 'messagingv2', ''))]
        times = rounds.measure(arms, plan)
    yield rounds.table(
        'One notification, ' f'{len(json.dumps(sample))} bytes of payload',
        times, [rounds.Versus('outbox', 'messagingv2'),
                rounds.Versus('outbox, durability = power', 'messagingv2'),
                rounds.Versus('outbox', 'noop')])


def _arm(at: contextlib.ExitStack, sample: dict[str, object],
         folder: pathlib.Path, name: str, driver: str,
         more: str) -> rounds.Arm:
    config = folder / f'{name}.conf'
    config.write_text(
        f'[DEFAULT]\ntransport_url = {servers.url("rabbitmq")}\n'
        '[compute_notify_outbox]\nrelay = false\nmax_messages = 10000\n'
        f'path = {folder}/{name}\n{more}\n')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(config)], default_config_dirs=[])
    transport = oslo_messaging.get_notification_transport(conf)
    at.callback(transport.cleanup)
    notifier = oslo_messaging.Notifier(transport, 'bench', driver=driver,
                                       topics=[_TOPIC])
    return rounds.Arm(name, lambda _: notifier.info(
        {}, 'compute_node.update', sample))
