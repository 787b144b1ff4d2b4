"""`ceiling` and `python -m analyzer`. An interrupt ends it without a traceback from the start."""

import sys

try:
    # Reading in the libraries takes a while, in which people notice that they mistyped.
    from analyzer.cli import main
except KeyboardInterrupt:
    sys.stderr.write("interrupted\n")
    sys.exit(130)

if __name__ == "__main__":
    main()
