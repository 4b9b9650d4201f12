"""``python -m crawlsched`` is the command ``crawlsched``."""

import gc
import os
import signal
import sys

__all__ = ["main"]

# Objects, more than most commands ever have. What a command loads stays to its end: with Python's 700 a fifth of most
# commands' time went into searches for garbage among it, while it was loaded and once more at the end.
_YOUNG_OBJECTS = 200_000


def main() -> int:
    """Run the command; Ctrl-C ends it without a word, also while its modules are being loaded."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:  # and is not ignored, as in what a shell runs behind
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_YOUNG_OBJECTS)
    # Threads of numpy's that wait for work do so by trying, for a twentieth of a second of a core each time.
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
