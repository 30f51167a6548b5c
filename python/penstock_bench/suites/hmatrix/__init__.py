"""The suite `hmatrix`: a solver whose matrix is larger than its memory."""
