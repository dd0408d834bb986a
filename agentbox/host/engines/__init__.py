"""Engines start, stop and inspect a box. What all engines share stands here; an engine is a
package.
"""
