"""Programs of features that agentbox itself brings, and how any such program is confined. One
package a program.
"""
