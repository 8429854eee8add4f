"""Reading traces: what clusters and archives print, turned into `evenhand_models.traces.Trace`."""

from evenhand_api.traces.files import read_trace
from evenhand_api.traces.formats import Format
from evenhand_api.traces.rows import OddKind, OddRow, Reading, ReadOptions

__all__ = ["Format", "OddKind", "OddRow", "ReadOptions", "Reading", "read_trace"]
