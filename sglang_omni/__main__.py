"""`python -m sglang_omni`, which is the command `sgl-omni`."""

import sys

from sglang_omni.entrypoints.cli.main import main

sys.exit(main())
