"""What scripts use of MXNet besides ``mxnet.recordio``: see :mod:`anyrec.compat`."""
