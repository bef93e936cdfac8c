# SPDX-License-Identifier: Apache-2.0
"""A routing driver without its routes is refused, by the option's name."""

import pathlib
import tempfile

from compute_notify import exception
from tests import service


class TestRouting(service.TestCase):

    def _refused(self, option):
        error = self.assertRaises(
            exception.InvalidOption, self.set_up,
            oslo_messaging_notifications=f'driver = routing\n{option}')
        self.assertIn('Option [oslo_messaging_notifications] routing_config: '
                      'cannot be read', str(error))

    def test_no_file(self):
        """The option is unset, or names no file."""
        self._refused('')
        self._refused('routing_config = /no/pe')

    def test_no_routes(self):
        """The file holds no routes."""
        path = pathlib.Path(tempfile.mkdtemp(), 'routing.yaml')
        for text in ('', 'a: [', '[1]', 'group: 7'):
            path.write_text(text)
            self._refused(f'routing_config = {path}')
