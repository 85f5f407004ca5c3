"""`python -m mizzen`: the command line."""

import sys

from mizzen.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
