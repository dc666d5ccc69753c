"""`python -m ronri` is `ronri`."""

import sys

from ronri.cli import main

sys.exit(main())
