"""The mixed-integer round: what can happen to every job, the rows that bind it, and what it is worth."""
