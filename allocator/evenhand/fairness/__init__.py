"""The fair fractional target: what each leaf should get of every GPU type (rules T1 to T5), by objective."""
