"""Tables of medians that a repository keeps instead of rows, and the pages and figures that are made of them."""
