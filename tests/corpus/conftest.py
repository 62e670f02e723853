"""The bucket on this computer, which scans use, too."""

from tests.commands.scan.conftest import s3, spawned_workers

__all__ = ["s3", "spawned_workers"]
