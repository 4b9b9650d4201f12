"""``python -m crawlsched`` is the command ``crawlsched``."""

import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command; Ctrl-C ends it without a word, also while its modules are being loaded."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:  # and is not ignored, as in what a shell runs behind
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from crawlsched.cli import main as command

    try:
        if raises:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
