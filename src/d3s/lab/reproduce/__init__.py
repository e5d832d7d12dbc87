"""Reproduction of the paper's figures and tables, each beside the values that the paper prints.

Names of items, or none for all, come in; a folder goes out, with figures, tables and comparisons of
each item, and a page over all of them. One module for each item, named after its place in the
paper: `d3s reproduce fig5` runs `fig5_accuracy`, and `fig5_typical` with `--lens typical`.

fig1b_working_range      working range against the size of a camera
fig3b_consensus_plane    predictions over virtual baseline and shift
fig5_accuracy            error over depth on planes, by threshold and by method
fig5_typical             error over depth on planes, with typical lenses
fig6_systems             other systems: Fig. 6 and Table S2
fig7_real_world          depth maps of rendered scenes
tab_s1_cases             special cases of the depth equation
fig_s1_confidence        confidence over candidates at one pixel
fig_s3_scale_and_offset  scale and offset over the virtual baseline
eq_s11_baselines         choice of the virtual baselines
fig_s5_synthetic_scenes  errors on synthetic scenes
fig_s6_psf               point-spread functions over depth

registry                 all items
item                     `Item`, its `Context` and its `Result`
run                      makes items, or keeps those that are up to date
store                    results of items on disk
page                     the page over all items
not_reproduced           parts of the paper that cannot be made again
protocol                 the paper's settings, and the methods that are measured
predictions              predicted depths of windows of a simulated plane
fig5_measurements        errors of all methods on the planes of Fig. 5
tab_s2_systems           Table S2 as data, with a check
errata                   equations as printed, where the derivation differs
"""
