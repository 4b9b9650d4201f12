"""``python -m crawlsched`` is the command ``crawlsched``."""

import gc
import os
import signal
import sys

__all__ = ["main"]

# Most commands make fewer objects than this, so that they end without a search for garbage. With Python's threshold of
# 700, such searches took a fifth of the time of most commands.
_YOUNG_OBJECTS = 200_000


def main() -> int:
    """Run the command; Ctrl-C ends it without a message, even while its modules are loaded."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:  # in a background job of a shell, Ctrl-C stays ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_YOUNG_OBJECTS)
    # With several threads, numpy's idle threads would use processor time while they wait for work.
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
