"""Live pages: frames of a source in, depth in a browser out.

A source (`d3s.frames`) gives frames; a pipeline splits them and estimates their depth; a page of
our own shows views, depth, sigma, confidence and flags, with values at a click. Saved depth maps,
recordings and folders are shown by the same page. The server answers this machine only, and only
requests with the token of its address.

slot        places for one item between threads: the newest wins
counts      counters of frames and losses, and rates
settings    method, options and filter, which change while frames come
results     one frame with its views, depth map, light and times
turns       turns of threads that compute frames at the same time
pipeline    `Pipeline`: grab, compute, newest result
shows       protocol of what a page can show
live        `LiveShow`: a pipeline on a page
saved       `SavedShow`: saved depth maps, recordings and folders on a page
pictures    colours, JPEG and colour scales
measure     pixel, distance and profile at a click
feed        `Feed`: sessions of the live page
channel     messages between page and server
server      `Server` and `Page`: any number of pages
page        the live page as a page of a server
points      `PointsPage`: 3D points by viser, behind our own checks
security    checks of token, Host and Origin
needs       packages of the extras

Pages are in the folder `pages`: HTML, CSS and JavaScript without a build step, of which `shared`
is for all pages.
"""
