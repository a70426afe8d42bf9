"""Exit status 0 if the dashboard here and its workers answer: python deploy/healthy.py"""

import os
import sys
import urllib.request

PORT = os.environ.get("STREAMLIT_SERVER_PORT", "8501")

try:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=12) as answer:
        sys.exit(answer.status != 200)
except OSError as error:
    sys.exit(f"not healthy: {error}")
