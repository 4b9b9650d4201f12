"""``python -m crawlsched`` is the command ``crawlsched``."""

import gc
import os
import signal
import sys

__all__ = ["main"]

# Objects, more than most commands ever have. Commands keep what they load until they end. With Python's threshold of
# 700 a fifth of most commands' time went into searches for garbage.
_YOUNG_OBJECTS = 200_000


def main() -> int:
    """Run the command; Ctrl-C ends it without a word, also while its modules are being loaded."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:  # and is not ignored, as in what a shell runs behind
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_YOUNG_OBJECTS)
    # Numpy's idle threads poll for work, a twentieth of a second of a core each time.
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
