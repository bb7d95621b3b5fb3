"""What a run was like, on one page and on one screen: read from its journal, whether it has ended or not."""

from regard.runs.report.history import History
from regard.runs.report.page import write_report

__all__ = ["History", "write_report"]
