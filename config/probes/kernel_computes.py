"""Starts the kernel that notebooks get, and has it compute one cell."""

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3", startup_timeout=50)
try:
    answer = client.execute_interactive("import sys; print(6 * 7, 'by', sys.executable)", timeout=20)
    assert answer["content"]["status"] == "ok", answer["content"]
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
