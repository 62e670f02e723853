"""`attnviz scan` into a folder that is removed first, as a finished scan is not done again.

python scan_command.py FOLDER ARGUMENT...
"""

import os
import shutil
import sys

out, *arguments = sys.argv[1:]
shutil.rmtree(out, ignore_errors=True)
os.execv(sys.executable, [sys.executable, "-m", "attnviz", "scan", *arguments, "-o", out])
