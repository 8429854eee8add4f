"""One family of rows a file, each with its rule, its inequality and a predicate that says whether it applies."""
