"""What people look at: a page about a mapped network, and a trace for Perfetto.

Both are made of programs and of what simulations say of them: here the numbers are put into blocks,
tables and a floor plan, and markup is left to `mizzen.report.page`. It must not know mappers, whose
programs it shows like anybody's.
"""

from mizzen.mesh.report.page import mesh_page
from mizzen.mesh.report.trace import trace

__all__ = ["mesh_page", "trace"]
