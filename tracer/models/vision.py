"""Classifiers of torchvision on random or given images of ImageNet's size."""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from tracer.models.job import Job
from triosim.errors import ConfigError

CLASSES = 1000
IMAGE = (3, 224, 224)
_IMAGES = {"inception_v3": (3, 299, 299)}


def build(name: str, batch_size: int) -> Job:
    """A torchvision model without trained weights."""
    models = _torchvision(name).models
    if name not in models.list_models(module=models):
        raise ConfigError("model", name, _unknown())
    shape = _IMAGES.get(name, IMAGE)
    return image_job(name, models.get_model(name, weights=None), batch_size, shape)


def is_missing() -> bool:
    """Whether torchvision is not there, or beside another torch than its own."""
    try:
        _torchvision("")
    except ConfigError:
        return True
    return False


def _unknown() -> str:
    return (
        "is neither a classifier of torchvision nor a known transformers architecture; "
        "write torchvision:NAME, transformers:NAME or package.module:factory"
    )


def _torchvision(name: str) -> Any:
    try:
        import torchvision  # type: ignore[import-not-found]
    except (ImportError, RuntimeError) as error:  # RuntimeError: beside another torch than its own
        raise ConfigError(
            "model", name,
            "needs torchvision, in the release that goes with this torch "
            f"({torch.__version__}): pip install torchvision ({str(error).splitlines()[0]})",
        ) from None  # fmt: skip
    return torchvision


def image_job(name: str, module: nn.Module, batch_size: int, shape: tuple[int, ...] = IMAGE) -> Job:
    """A classifier with random images and labels."""
    return Job(
        name=name,
        module=module,
        inputs=(torch.randn(batch_size, *shape),),
        targets=torch.randint(0, CLASSES, (batch_size,)),
        loss=classification_loss,
        batch_size=batch_size,
    )


def classification_loss(output: Any, targets: Tensor | None) -> Tensor:
    """Cross entropy; models with auxiliary heads return a tuple that starts with the main one.

    The others weigh 0.3 each, as in the GoogLeNet paper (Szegedy et al. 2014, section 5).
    """
    assert targets is not None
    heads = output if isinstance(output, tuple) else (output,)
    losses = [nn.functional.cross_entropy(logits, targets) for logits in heads]
    return losses[0] + 0.3 * sum(losses[1:]) if len(losses) > 1 else losses[0]


def image_batches(folder: str, batch_size: int, count: int) -> list[tuple[Tensor, Tensor]]:
    """Up to `count` batches of an ImageFolder, resized and cropped to ImageNet's size."""
    torchvision = _torchvision("--data")
    transform = torchvision.transforms.Compose(
        [
            torchvision.transforms.Resize(256),
            torchvision.transforms.CenterCrop(IMAGE[1:]),
            torchvision.transforms.ToTensor(),
        ]
    )
    try:
        images = torchvision.datasets.ImageFolder(folder, transform)
    except FileNotFoundError as error:
        raise ConfigError("data", folder, f"is no folder of class folders ({error})") from None
    if len(images) < batch_size:
        raise ConfigError("data", folder, f"holds {len(images)} images; a batch is {batch_size}")
    loader = torch.utils.data.DataLoader(images, batch_size, shuffle=True, drop_last=True)
    return [(images, labels) for images, labels in islice(loader, count)]
