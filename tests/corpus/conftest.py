"""The bucket on this computer, which scans use, too."""

from tests.commands.scan.conftest import s3

__all__ = ["s3"]
