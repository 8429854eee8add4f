"""The version of evenhand, stated in every plan."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("evenhand")
except PackageNotFoundError:
    VERSION = "0+source"
