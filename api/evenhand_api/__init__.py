"""The doors of evenhand: the REST service and the command line over the library."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("evenhand")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0.0.0+source"

__all__ = ["__version__"]
