"""The generated pages of docs/, one per module, each from the code that it describes.
`tools/write_pages.py` writes them.
"""

from typing import Final

COMMAND: Final = "python tools/write_pages.py"
