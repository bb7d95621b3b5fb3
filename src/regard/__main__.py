"""`python -m regard` is `regard`. Until the command line listens, Ctrl-C ends it without a traceback."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

from regard.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
