"""A Polaris of our own: state and answers of Apache Polaris 1.4.1 as far as Lance tables need it.

Held line by line to the recordings in ``tests/recordings/polaris``. What no recording shows follows the source of Polaris 1.4.1
and says so; what neither shows is answered with 501.
"""

from tests.stubs.polaris.server import PolarisStub

__all__ = ["PolarisStub"]
