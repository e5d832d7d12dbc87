"""Kernels and arrays in, fast results out: compilation, threads, SIMD vectors, scratch memory.

compile     loops compiled by Numba
cache       folders that keep compiled loops between runs
digest      digest of the package: the key of kept results
processes   calls in several processes
parallel    rows or tasks shared among threads
simd        vectors in compiled loops
scratch     memory that is kept from one call to the next
"""
