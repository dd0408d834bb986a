"""Says how many matches COLMAP wrote into its database."""

import sqlite3
import sys

rows = sqlite3.connect(sys.argv[1]).execute("SELECT rows FROM matches").fetchall()
print(f"matched {sum(count for (count,) in rows)} points")
