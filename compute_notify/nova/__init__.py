# SPDX-License-Identifier: Apache-2.0
"""The hook on a real Nova: install it, take it off, ask whether it is there.

Only this room imports Nova, and nothing in this package imports this room.
Operators do not call it either: naming the notification driver
``compute_notify`` in nova.conf does, see :mod:`compute_notify.nova.activate`.
Importing it does not import Nova, so that the driver can tell where Nova is
missing or strange.
"""


def install() -> None:
    """Let Nova's compute nodes announce their changes in this process.

    Nova's classes are changed in place: all of it, or nothing. Nova's
    configuration must have been read. Installing twice is installing once.

    :raises ImportError: Nova is not installed.
    :raises compute_notify.exception.UnsupportedNova: this Nova is of another
        version, or not of the shape that is patched.
    :raises compute_notify.exception.InvalidOption: ``[compute_notify]
        extra_update_fields`` names a field that does not exist.
    """
    from compute_notify.nova import patch
    patch.install()


def uninstall() -> None:
    """Put Nova's own methods back.

    A method that something else has wrapped since stays as it is; what is
    left of ours underneath announces nothing. Twice is once.
    """
    from compute_notify.nova import patch
    patch.uninstall()


def is_installed() -> bool:
    """Return whether changes are announced in this process."""
    from compute_notify.nova import patch
    return patch.is_installed()
