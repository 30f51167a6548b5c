"""The page that a report is: its figures, its words and its style."""
