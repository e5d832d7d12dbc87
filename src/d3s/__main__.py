"""`python -m d3s`: the command line where its script is not on the path."""

from d3s.cli import main

main()
