"""`python -m analyzer` is `ceiling`."""

from analyzer.cli import main

if __name__ == "__main__":
    main()
