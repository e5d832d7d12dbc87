"""Reproduction of the paper's figures and tables, each beside the values that the paper prints.

Names of items, or none for all, come in; a folder goes out, with figures, tables and comparisons of
each item, and a page over all of them. Modules are named after places in the paper: `d3s reproduce
fig5` runs `fig5_accuracy`, and `fig5_typical` with `--lens typical`.

fig1b_working_range      working range against the size of a camera
fig3b_consensus          predictions over virtual baseline and shift; confidence at one pixel (S1)
fig5_accuracy            error over depth on planes, by threshold and by method
fig5_order               labels, windows, gain and focus, one at a time: the order explained
fig5_typical             error over depth on planes, with typical lenses
fig6_systems             other systems: Fig. 6, and Table S2 as data with a check
fig7_real_world          depth maps of rendered scenes
tab_s1_cases             special cases of the depth equation
fig_s3_tuning            scale and offset over the virtual baseline, and its choice (Eq. S11)
fig_s5_synthetic_scenes  errors on synthetic scenes
fig_s6_psf               point-spread functions over depth

item                     `Item`, its `Context`, and its `Result` in memory and on disk
run                      all items; makes them, or keeps those that are up to date
page                     the page over all items, and what cannot be made again
protocol                 the paper's settings, and the methods that are measured
errata                   equations as printed, where the derivation differs
"""
