"""Physics of the two-lens camera: thin lens, blur, disparity, depth equations, accuracy bounds.

Numbers and arrays come in, numbers and arrays go out. All functions are pure, one function an
equation; `docs/reproduction.md` maps the equations of the paper to them.

lens         parameters shared by the equations: a lens, its rates of change, image derivatives
thin_lens    conjugate distances, focus, blur and its derivatives (Eqs. 4 and 7)
psf          point-spread and transfer functions: Gaussian, disk, diffraction (Eqs. 3 and 5)
wavefront    rays and transfer functions of a lens with aberrations and a clipped pupil
relation     image rate and the depth polynomial of a camera that changes (Eqs. 8, 9 and S1)
roots        real roots of quadratics and cubics (Eq. S3)
cases        depth in closed form when only some parameters change (the table of special cases)
stereo       disparity, alignment shift and error conversion (Eqs. 12 and 18)
windows      derivatives of sampled images, shifts along rows, sums over windows
d3           depth of an aligned pair, per pixel and per window (Eqs. 10, 11 and 17)
consensus    agreement of defocus and stereo, and confidence (Eqs. 13 to 16, S5)
information  Cramér-Rao bound of the depth, by cue
"""
