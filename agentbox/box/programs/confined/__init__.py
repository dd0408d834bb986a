"""Starts the program of a feature: it confines itself, then executes it under the same process id
(ADR 0033). Nothing else belongs here.
"""
