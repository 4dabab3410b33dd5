"""Notifications: notices that were written in the business transaction become messages to channels, sent at least once.

``deliver_due`` makes one pass: it groups notices, stores them as notifications, and sends those that are due. The worker's
``NotificationSender`` makes passes while it leads. The command line makes one pass after a run.
"""

from federator.notify.delivery import DeliveryResult, deliver_due, send_test
from federator.notify.sender import NotificationSender

__all__ = ["DeliveryResult", "NotificationSender", "deliver_due", "send_test"]
