# SPDX-License-Identifier: Apache-2.0
"""The outbox: a notification driver that stores first and sends later."""
