"""``python -m crawlsched`` is the command ``crawlsched``."""

import sys

from crawlsched.cli import main

if __name__ == "__main__":
    sys.exit(main())
