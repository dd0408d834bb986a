"""The program `telegram-mirror`: lifecycle events of agents in one chat (feature telegram_mirror).
Nothing else belongs here.
"""
