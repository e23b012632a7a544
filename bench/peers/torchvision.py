"""torchvision in torch's DataLoader with worker processes, over the files themselves.

Decoding is torchvision's own (`torchvision.io`, on libjpeg-turbo) or Pillow's. Either way the transforms
are torchvision's, and an image is reduced with antialiasing.
"""

from pathlib import Path

import torch.utils.data
from data import IMAGE_BATCH, IMAGE_SIZE, MEAN, STD, TIMES_OVER
from PIL import Image
from torchvision import io, transforms

from .base import Peer


class Contestant(Peer):
    def images(self, folder, count, decode, workers):
        loader = torch.utils.data.DataLoader(
            Photos(sorted(Path(folder).glob("*.jpg"))[:count] * TIMES_OVER, decode),
            batch_size=IMAGE_BATCH,
            shuffle=True,
            drop_last=True,
            num_workers=workers,
            persistent_workers=True,
        )
        while True:
            for images, _ in loader:
                yield images

    def as_array(self, batch):
        return batch.numpy()


class Photos(torch.utils.data.Dataset):
    """Files, decoded in one of the two ways, and made ready for training."""

    def __init__(self, paths, decode):
        self.paths = paths
        self.load = {"torchvision.io": by_torchvision, "PIL": by_pillow}[decode]
        self.transform = transforms.Compose([
            transforms.RandomResizedCrop(IMAGE_SIZE, antialias=True),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor() if decode == "PIL" else transforms.ConvertImageDtype(torch.float32),
            transforms.Normalize([each / 255 for each in MEAN], [each / 255 for each in STD]),
        ])  # fmt: skip

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        return self.transform(self.load(str(self.paths[number]))), number


def by_torchvision(path):
    return io.decode_jpeg(io.read_file(path))


def by_pillow(path):
    with Image.open(path) as image:
        return image.convert("RGB")
