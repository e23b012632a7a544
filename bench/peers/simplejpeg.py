"""The limit of the image rows: libjpeg-turbo decodes whole images, and nothing else is done.

simplejpeg calls it without the GIL. The files' bytes are in memory, and every thread reuses one buffer,
so that neither reading nor allocating counts.
"""

import threading
import time
from pathlib import Path

import numpy as np
import simplejpeg

from .base import Peer


class Contestant(Peer):
    def measure(self, task, records):
        options = task["options"]
        files = [path.read_bytes() for path in sorted(Path(options["folder"]).glob("*.jpg"))[: options["count"]]]
        decode(files, options["threads"], 0)
        start = time.perf_counter()
        pictures = decode(files, options["threads"], task["seconds"])
        return {"seconds": time.perf_counter() - start, "bytes": 0, "records": pictures}


def decode(files, threads, seconds):
    """Decodes for this long, and every file at least once; returns how many were decoded."""
    done = [0] * threads
    end = time.perf_counter() + seconds

    def work(number):
        mine = files[number::threads]
        height, width, _, _ = simplejpeg.decode_jpeg_header(mine[0])
        buffer = np.empty((height, width, 3), np.uint8)
        for at in range(1_000_000_000):
            if at >= len(mine) and time.perf_counter() > end:
                return
            simplejpeg.decode_jpeg(mine[at % len(mine)], buffer=buffer)
            done[number] += 1

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(done)
