"""Evaluation on stereo data sets that users bring: Middlebury 2014 and v3, ETH3D, KITTI 2015.

A folder of scenes and methods come in. Every method runs on the same views; its disparities are
compared with the truth of the data set. Tables by scene, region and method, curves of error over
density, and a summary come out.

folders     scenes in a folder, recognised by the names of their files
scene       one scene: views, camera, truth and regions
light       changes of the light of the right view
settings    options of methods on stereo data sets
measures    figures of a depth map in pixels of disparity
summary     mean over the scenes
page        the summary as tables in Markdown
evaluation  `evaluate_stereo`: the run over all scenes, and its files
"""

from d3s.lab.evaluate.stereo.evaluation import StereoResults, evaluate_stereo, write_stereo

__all__ = ["StereoResults", "evaluate_stereo", "write_stereo"]
