# SPDX-License-Identifier: Apache-2.0
"""The command ``compute-notify``, one module per subcommand."""

import warnings

# oslo.messaging imports eventlet whether it is used or not, and eventlet says
# so in eight lines on the terminal of whoever runs a command.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
