# SPDX-License-Identifier: Apache-2.0
"""What the notify drivers do, side by side, when a RabbitMQ misbehaves."""
