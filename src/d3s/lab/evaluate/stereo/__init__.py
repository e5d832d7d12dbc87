"""Evaluation on stereo data sets that users bring: Middlebury 2014 and v3, ETH3D, KITTI 2015.

A folder of scenes and methods come in. Every method runs on the same views; its disparities are
compared with the truth of the data set. Tables by scene, region and method, curves of error over
density, and a summary come out.

scene       scenes in a folder; views, camera, truth and regions of one, and changes of its light
measures    figures of a depth map in pixels of disparity, and their mean over the scenes
evaluation  `evaluate_stereo`: options of methods, the run over all scenes, and its files
"""

from d3s.lab.evaluate.stereo.evaluation import StereoResults, evaluate_stereo, write_stereo

__all__ = ["StereoResults", "evaluate_stereo", "write_stereo"]
