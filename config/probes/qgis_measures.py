"""Buffers a point by one unit with QGIS's own algorithm, in a projected system, and measures the disc."""

import sys

from qgis.core import QgsApplication, QgsFeature, QgsGeometry, QgsPointXY, QgsVectorLayer

application = QgsApplication([], False)
application.initQgis()
sys.path.append("/usr/share/qgis/python/plugins")
import processing  # noqa: E402  # found only now
from processing.core.Processing import Processing  # noqa: E402

Processing.initialize()
layer = QgsVectorLayer("Point?crs=epsg:32633", "points", "memory")
assert layer.isValid(), "no provider"
assert layer.crs().isValid(), "no projection database"
feature = QgsFeature()
feature.setGeometry(QgsGeometry.fromPointXY(QgsPointXY(500000, 5500000)))
layer.dataProvider().addFeatures([feature])
made = processing.run(
    "native:buffer", {"INPUT": layer, "DISTANCE": 1, "SEGMENTS": 32, "OUTPUT": "memory:"}
)["OUTPUT"]
areas = [each.geometry().area() for each in made.getFeatures()]
print(f"buffered {len(areas)} feature, area {areas[0]:.2f}")
application.exitQgis()
