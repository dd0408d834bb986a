"""Background work of the API: journal of the boot, drift, drain, canaries. One task per module."""
