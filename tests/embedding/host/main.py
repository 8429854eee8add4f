"""The host's program."""

import evenhand

from allocator import decide
from api import orders


def main() -> None:
    """Print what happens to each order, and where evenhand came from."""
    plan = decide(orders())
    print(evenhand.__file__)
    for assignment in plan.assignments:
        print(assignment.job, assignment.action.value, assignment.gpus)


if __name__ == "__main__":
    main()
