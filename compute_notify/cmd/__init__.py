# SPDX-License-Identifier: Apache-2.0
"""The command ``compute-notify``, one module per subcommand."""
