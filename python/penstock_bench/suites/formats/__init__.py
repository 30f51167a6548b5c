"""The suite `formats`: reads and writes of files with formats, beside their own libraries."""
