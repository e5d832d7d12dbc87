"""Path-traced rooms: a second twin that shares nothing with the first but rig, textures and pixels.

A room and a rig come in. Mitsuba 3 (the extra `d3s[render]`) follows light from a lamp over walls
and things through two thin lenses. A pair of views without noise comes out, with its truth.

Modules::

    room           `Room`, the record of a random room, and its layout of solids from its seed
    mitsuba        `render_room`: both views of a room by Mitsuba, with their truth
    store          rendered pairs as files, found again by a digest
"""
