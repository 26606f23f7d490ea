"""Sheets and pages about datasets."""
