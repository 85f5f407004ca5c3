"""Projects of TensorFlow Lite Micro: the model as C, its operators, what is built of a checkout.

The container is the `.tflite` itself. Of TensorFlow Lite Micro nothing is copied: the project names
the kernels that the model needs, and make takes them, and the core, from the user's checkout.

It must not know artifacts: how much memory a model needs is said to it.
"""

from mizzen.package.tflm.operators import OPERATORS, TflmOperator
from mizzen.package.tflm.project import TflmModel, project_files

__all__ = ["OPERATORS", "TflmModel", "TflmOperator", "project_files"]
