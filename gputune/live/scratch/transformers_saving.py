"""transformers: `save_pretrained` and `from_pretrained` of everything that has them."""

from contextlib import suppress
from types import ModuleType
from typing import Any

from ._rerouting import Paths, Places, reroute

HUB = "transformers.utils.hub"
_AUTO = (
    "auto_factory", "configuration_auto", "feature_extraction_auto", "image_processing_auto", "modeling_auto",
    "processing_auto", "tokenization_auto", "video_processing_auto",
)  # fmt: skip
METHODS = (
    ("save_pretrained", "save_directory", "written"),
    ("from_pretrained", "pretrained_model_name_or_path", "read"),
    ("from_pretrained", "pretrained_model_name", "read"),
)
"""The methods that save and load, with the parameter that is a path and the method of Places for it."""
PATHS: Paths = {HUB: [], **{f"transformers.models.auto.{name}": [] for name in _AUTO}}


def redirect(module: ModuleType, places: Places) -> None:
    if module.__name__ == HUB:
        _follow_subclasses(module.PushToHubMixin, places)
        return
    for kind in [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]:
        _redirect_class(kind, places)


def _follow_subclasses(mixin: Any, places: Places) -> None:
    """All that is saved has one base. Some classes of single models save in their own way, and so may the program's."""

    def init_subclass(cls: Any, /, **named: Any) -> None:
        super(mixin, cls).__init_subclass__(**named)
        _redirect_class(cls, places)

    mixin.__init_subclass__ = classmethod(init_subclass)
    waiting = [mixin]
    while waiting:
        subclasses = type.__subclasses__(waiting.pop())
        waiting += subclasses
        for kind in subclasses:
            _redirect_class(kind, places)


def _redirect_class(kind: type, places: Places) -> None:
    for name, parameter, place in METHODS:
        with suppress(LookupError, TypeError, ValueError):  # a class may take other arguments, and still be made
            reroute(kind, name, parameter, getattr(places, place))
