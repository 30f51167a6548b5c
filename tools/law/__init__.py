"""The rules of tools/tidy.py, by what they look at: one file (files), what may know what (layers), the tree (tree).

A function `rule_*(source, sources)` yields findings about one file, a function `tree_*(sources)` about the whole tree.
"""
