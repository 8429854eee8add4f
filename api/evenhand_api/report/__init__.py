"""The plan for people: tables that stay readable with thousands of jobs, at any width."""

from evenhand_api.report.explanation import explanation
from evenhand_api.report.plan_report import plan_report
from evenhand_api.report.text import as_text

__all__ = ["as_text", "explanation", "plan_report"]
