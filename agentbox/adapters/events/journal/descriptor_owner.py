"""An object with at most one open descriptor."""

import os


class DescriptorOwner:
    """`_fd` is -1 while none is open."""

    _fd = -1

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
