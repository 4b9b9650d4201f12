"""``python -m crawlsched`` is the command ``crawlsched``."""

import gc
import os
import signal
import sys

__all__ = ["main"]

# More objects than most commands ever have: commands keep their objects until they end. With Python's threshold of 700,
# searches for garbage took a fifth of the time of most commands.
_YOUNG_OBJECTS = 200_000


def main() -> int:
    """Run the command; Ctrl-C ends it without a message, even while its modules are loaded."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:  # unlike in background jobs of a shell, which ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_YOUNG_OBJECTS)
    # Otherwise numpy's idle threads poll for work, which takes a twentieth of a second of a core each time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from crawlsched.cli import main as command

    try:
        if raises:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command()
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
