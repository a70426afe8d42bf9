"""python -m triosim"""

import sys

from triosim.cli import main

sys.exit(main())
