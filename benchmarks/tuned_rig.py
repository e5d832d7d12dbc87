"""Tune the twin of the camera on simulated boards, and keep it for the league and the demo.

.venv/bin/python benchmarks/tuned_rig.py
"""

from d3s.lab.evaluate.tuned_twin import TUNED_RIG, tuned_twin

tuned_twin().rig.save(TUNED_RIG, overwrite=True)
print(f"Wrote {TUNED_RIG.name}.")
