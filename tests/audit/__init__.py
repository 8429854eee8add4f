"""The audit against pencil and paper, and against faults planted in plans."""
