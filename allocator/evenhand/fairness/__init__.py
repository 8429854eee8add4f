"""The fair fractional target: what each leaf should get of every GPU type, one file per objective (rules T1 to T5)."""
