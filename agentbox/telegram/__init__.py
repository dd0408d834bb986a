"""The program `telegram-mirror`: what becomes of agents, in one chat (feature telegram_mirror)."""
