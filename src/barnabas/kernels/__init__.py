"""Hot loops over bytes and ints, compiled by Cython from ordinary Python; they import nothing of ours."""
