"""What needs a package that evenhand does not need is collected only where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("ray") else ["test_two_ray_nodes.py"]
