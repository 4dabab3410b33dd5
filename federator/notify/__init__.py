"""Notifications: notices that were written with the business transaction become messages to channels, sent at least once.

``deliver`` makes one pass: notices → groups → rows, and what is due is sent. The worker's ``Courier`` makes passes as long as it leads;
the command line makes one when a run has ended.
"""

from federator.notify.courier import Courier
from federator.notify.deliver import Delivered, deliver, test

__all__ = ["Courier", "Delivered", "deliver", "test"]
