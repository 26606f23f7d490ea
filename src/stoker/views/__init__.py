"""What the model sees of an image: which crop, resized to what."""

from stoker.views.view import CenterCrop, RandomResizedCrop, Resize, View

__all__ = ["CenterCrop", "RandomResizedCrop", "Resize", "View"]
