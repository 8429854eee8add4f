"""Who may ask what: tokens, what they cover, and what of an answer they may see."""
