"""`python -m tilecast`: the program."""
import sys

from ._program import main

if __name__ == "__main__":
    sys.exit(main())
