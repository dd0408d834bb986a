"""The five slots: the adapter runtime and the implementations. Slots do not import each other;
shared code belongs in `runtime` or `core`."""
