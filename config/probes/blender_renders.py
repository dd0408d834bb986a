"""Run by Blender: renders its default scene and reads the picture back."""

import os
from pathlib import Path

import bpy

scene = bpy.context.scene
scene.render.engine = "CYCLES"
scene.cycles.device = "CPU"
scene.cycles.samples = 1
scene.cycles.use_denoising = False  # Debian builds without that library
scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = (
    64,
    48,
    100,
)
scene.render.filepath = str(Path(os.environ["TMPDIR"], "cube.png"))
bpy.ops.render.render(write_still=True)
image = bpy.data.images.load(scene.render.filepath)
shades = len(set(list(image.pixels)[::4]))
assert shades > 8, "the picture is empty"
print(f"rendered {image.size[0]} x {image.size[1]}, {shades} shades")
