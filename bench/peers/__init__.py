"""One file a contestant, all with the interface of :mod:`peers.base`.

A contestant's name is its module's. What it needs from PyPI is in the `.txt` file beside it: every
package with its version, installed without dependencies into an environment of its own.
"""
