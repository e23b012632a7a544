"""One file per contestant, all with the interface of :mod:`peers.base`.

A contestant's name is its module's. The `.txt` file of the same name lists what it needs from PyPI: every package
with its version, installed without dependencies into its own environment.
"""
