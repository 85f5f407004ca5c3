"""From the work graph to passes: fusion, strategies, stripes, places in SRAM."""

from mizzen.targets.ethos_n.schedule.preparation import schedule

__all__ = ["schedule"]
