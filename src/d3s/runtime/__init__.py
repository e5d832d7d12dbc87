"""Kernels and arrays in, fast results out: compilation, threads, SIMD vectors, scratch memory.

compile     loops compiled by Numba
cache       folders that keep compiled loops between runs
digest      digest of the package: the key of kept results
versions    versions of this package and of its libraries, and a digest of all code
parallel    rows or tasks shared among threads
simd        vectors in compiled loops
scratch     memory that is kept from one call to the next
allocator   freed memory: kept in a worker, or given back to the system
"""
