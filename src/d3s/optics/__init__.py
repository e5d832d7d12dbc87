"""What light does: thin lens, blur, disparity, the depth equations and the limits of knowledge.

Pure functions of numbers and arrays, one function an equation; `docs/equations.md` maps the
paper's equations to them.

lens         the numbers that the equations share: a camera, its rates, an image's derivatives
thin_lens    conjugates, focus, blur and its derivatives
psf          point-spread and transfer functions: Gaussian, disk, diffraction
stereo       disparity, alignment, and the conversion of errors
relation     the general relation of depth and image derivatives, as a polynomial
roots        its real roots, and the choice among them
cases        the closed forms when few parameters change
printed      the paper's forms where they differ
windows      derivatives of sampled images, sums over windows
d3           depth from an aligned pair, per pixel and per window
consensus    agreement of defocus and stereo, and confidence
information  the Cramér-Rao bound, by cue
systems      published systems, and what their figures imply
"""
